-- An object counts while both of its records lie in the window. greatest(t0, t1) is no time attribute in Flink SQL, but
-- the row of the later record carries it, and OVER gives it the earlier time. Of two records at the very same time,
-- both see both: r0's is taken.
CREATE VIEW records AS
  SELECT object_id, event_time, `value`, 0 AS side FROM r0 UNION ALL
  SELECT object_id, event_time, `value`, 1 AS side FROM r1;

CREATE VIEW joined AS
  SELECT object_id, event_time, score, oldest FROM (
    SELECT object_id, event_time, side,
           SUM(`value`) OVER pair AS score,
           COUNT(*) OVER pair AS parts,
           MIN(CAST(event_time AS TIMESTAMP(3))) OVER pair AS oldest
    FROM records
    WINDOW pair AS (PARTITION BY object_id ORDER BY event_time
                    RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW)
  ) WHERE parts = 2 AND (side = 0 OR oldest < CAST(event_time AS TIMESTAMP(3)));

-- By hand: window ends are whole seconds, so that of the objects with the same second of both times only the best
-- can ever be among the best. Top-N right on HOP would copy every object 60 times.
CREATE VIEW panes AS
  SELECT object_id, score, oldest, event_time FROM (
    SELECT object_id, score, oldest, window_time AS event_time,
           ROW_NUMBER() OVER (
             PARTITION BY window_start, window_end, FLOOR(oldest TO SECOND) ORDER BY score DESC) AS place
    FROM TABLE(TUMBLE(TABLE joined, DESCRIPTOR(event_time), INTERVAL '1' SECOND))
  ) WHERE place <= 10;

INSERT INTO results
SELECT window_end, object_id, score, place FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY score DESC) AS place
  FROM TABLE(HOP(TABLE panes, DESCRIPTOR(event_time), INTERVAL '1' SECOND, INTERVAL '60' SECOND))
  WHERE oldest >= window_start
) WHERE place <= 10;
