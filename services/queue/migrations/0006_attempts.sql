-- Accounting: one row for each attempt that has ended, in a partition for each calendar month (UTC) by its end, kept for
-- years (queue.accounting.months). The partitions are made and dropped by the queue (adapters/attempt_store.h).
--
-- Columns that a report sums come first: what stands behind the last one it reads costs it nothing.
CREATE TABLE attempts (
  ended_ms bigint NOT NULL,
  waited_ms bigint NOT NULL,            -- for this attempt
  start_ms bigint,                      -- it held its nodes from here to its end; NULL: it never started
  cpu_milli_seconds bigint NOT NULL,    -- used: what was held, times the time that it was held
  memory_mib_seconds bigint NOT NULL,
  gpu_milli_seconds bigint NOT NULL,
  -- For percentiles: waits of a class differ by less than 6.5 %. NULL: it never started.
  wait_class smallint GENERATED ALWAYS AS
    (CASE WHEN start_ms IS NOT NULL THEN floor(16 * ln(waited_ms / 1000.0::float8 + 1)) END) STORED,
  username text NOT NULL,
  queue text NOT NULL,
  namespace text NOT NULL,
  outcome text NOT NULL,                -- the job's last state, or Requeued
  submitted_ms bigint NOT NULL,
  duration_ms bigint NOT NULL,          -- that it might run; 0: unlimited
  cpu_millis bigint NOT NULL,           -- asked, of all slots
  memory_bytes bigint NOT NULL,
  gpu_millis bigint NOT NULL,
  attempt integer NOT NULL,
  slots integer NOT NULL,
  job_id text NOT NULL,
  pool text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  reason text NOT NULL,
  message text NOT NULL,                -- its first 200 characters
  PRIMARY KEY (ended_ms, job_id, attempt)
) PARTITION BY RANGE (ended_ms);

-- Whose job it is. Of jobs that were there before: with their next change.
ALTER TABLE jobs ADD COLUMN username text NOT NULL DEFAULT '';
