-- By hand: the best of each second first, then windows over those alone. Top-N right on HOP, as Flink's documentation
-- has it, gives the same and copies every record 60 times.
CREATE VIEW panes AS
  SELECT object_id, score, event_time FROM (
    SELECT object_id, `value` AS score, window_time AS event_time,
           ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY `value` DESC) AS place
    FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(event_time), INTERVAL '1' SECOND))
  ) WHERE place <= 100;

INSERT INTO results
SELECT window_end, object_id, score, place FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY score DESC) AS place
  FROM TABLE(HOP(TABLE panes, DESCRIPTOR(event_time), INTERVAL '1' SECOND, INTERVAL '60' SECOND))
) WHERE place <= 100;
