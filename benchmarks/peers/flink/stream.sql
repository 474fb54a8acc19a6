-- A stream of the workload, one table a topic.
CREATE TABLE {stream} (
  object_id  STRING NOT NULL,
  event_time TIMESTAMP(3) NOT NULL,
  `value`    DOUBLE NOT NULL,
  WATERMARK FOR event_time AS event_time - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '{topic}',
  'properties.bootstrap.servers' = '{bootstrap}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'avro'
);
