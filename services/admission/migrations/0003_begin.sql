-- Not to be started before, in milliseconds since the epoch, as said last; 0: at once.
ALTER TABLE workloads ADD COLUMN begin_ms bigint NOT NULL DEFAULT 0;
