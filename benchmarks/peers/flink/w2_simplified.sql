-- Simplified in Flink's favour: an object counts for 60 s from the time of r0's record, wherever r1's lies. By hand:
-- the best of each second first, then windows over those alone.
CREATE VIEW joined AS
  SELECT r0.object_id, r0.event_time, r0.`value` + r1.`value` AS score
  FROM r0 JOIN r1 ON r0.object_id = r1.object_id
   AND r1.event_time BETWEEN r0.event_time - INTERVAL '30' SECOND AND r0.event_time + INTERVAL '30' SECOND;

CREATE VIEW panes AS
  SELECT object_id, score, event_time FROM (
    SELECT object_id, score, window_time AS event_time,
           ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY score DESC) AS place
    FROM TABLE(TUMBLE(TABLE joined, DESCRIPTOR(event_time), INTERVAL '1' SECOND))
  ) WHERE place <= 10;

INSERT INTO results
SELECT window_end, object_id, score, place FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY score DESC) AS place
  FROM TABLE(HOP(TABLE panes, DESCRIPTOR(event_time), INTERVAL '1' SECOND, INTERVAL '60' SECOND))
) WHERE place <= 10;
