-- The delivery loop's tables (libs/delivery). Each service has its own, in its schema.

-- How far a partition has been handled, and by whom. `epoch` rises when somebody takes the partition, `commits` with each
-- batch that touches it: a commit whose outcome is unknown is settled by reading it.
CREATE TABLE inbox (
  partition int PRIMARY KEY,
  holder text NOT NULL,
  epoch bigint NOT NULL,
  commits bigint NOT NULL DEFAULT 0,
  next_offset bigint NOT NULL DEFAULT 0,
  -- The greatest append time so far: the log's time.
  append_ms bigint NOT NULL DEFAULT 0,
  -- The log before next_offset is not all known to us (made anew, or cut by retention): a stream that is new to us may
  -- begin at any sequence.
  truncated boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- The highest sequence seen of each stream.
CREATE TABLE inbox_streams (
  partition int NOT NULL,
  stream text NOT NULL,
  seq bigint NOT NULL,
  PRIMARY KEY (partition, stream)
) WITH (fillfactor = 50);

-- Messages that were committed and may not be in Kafka yet: one row for each batch, stream and target partition.
CREATE TABLE outbox (
  stream text NOT NULL,
  topic text NOT NULL,
  partition int NOT NULL,
  -- The messages' sequences are last_seq - count + 1 … last_seq.
  last_seq bigint NOT NULL,
  count int NOT NULL,
  -- fluxqueue.delivery.v1.OutboxBlob
  blob bytea NOT NULL,
  PRIMARY KEY (stream, topic, partition, last_seq)
);

-- The highest sequence given out.
CREATE TABLE outbox_streams (
  stream text NOT NULL,
  topic text NOT NULL,
  partition int NOT NULL,
  seq bigint NOT NULL,
  PRIMARY KEY (stream, topic, partition)
) WITH (fillfactor = 50);

-- Who watches (services without a log); `expires` by the database's clock.
CREATE TABLE leases (
  shard text PRIMARY KEY,
  holder text NOT NULL,
  epoch bigint NOT NULL,
  commits bigint NOT NULL DEFAULT 0,
  expires timestamptz NOT NULL
) WITH (fillfactor = 50);
