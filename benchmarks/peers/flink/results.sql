-- The ranking of each window, one record a row.
CREATE TABLE results (
  window_end TIMESTAMP(3),
  object_id  STRING,
  score      DOUBLE,
  place      BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '{topic}',
  'properties.bootstrap.servers' = '{bootstrap}',
  'format' = 'json'
);
