-- What limits and shares go by, and how long jobs ran (fluxqueue.queue.v1.UsageRow). One row for each user, namespace and
-- queue that has ever held something; kind: queue, namespace, user, history.
CREATE TABLE usage (
  pool text NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  row bytea NOT NULL,
  PRIMARY KEY (pool, kind, name)
);

-- The number of a job among those of its pool that have ended, 0 while it lives: jobs may depend on the last ones.
ALTER TABLE jobs ADD COLUMN ending bigint NOT NULL DEFAULT 0;
CREATE INDEX jobs_ending ON jobs (pool, ending) WHERE ending > 0;
