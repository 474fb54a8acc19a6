-- As Flink's documentation leads to: windows shared by slices of a second, then the best of each window.
CREATE VIEW records AS
  SELECT object_id, event_time, `value` FROM r0 UNION ALL
  SELECT object_id, event_time, `value` FROM r1 UNION ALL
  SELECT object_id, event_time, `value` FROM r2 UNION ALL
  SELECT object_id, event_time, `value` FROM r3;

INSERT INTO results
SELECT window_end, object_id, score, place FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY score DESC) AS place
  FROM (
    SELECT window_start, window_end, object_id, SUM(`value`) AS score
    FROM TABLE(HOP(TABLE records, DESCRIPTOR(event_time), INTERVAL '1' SECOND, INTERVAL '60' SECOND))
    GROUP BY window_start, window_end, object_id
  )
) WHERE place <= 10;
