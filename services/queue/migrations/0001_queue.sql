-- Written by the queue only. `row` and `requested` are protobuf messages (fluxqueue.queue.v1, events.v1).

CREATE TABLE pools (
  pool text PRIMARY KEY,
  partition integer NOT NULL,
  row bytea NOT NULL
);

CREATE TABLE queues (
  pool text NOT NULL,
  queue text NOT NULL,
  row bytea NOT NULL,
  PRIMARY KEY (pool, queue)
);

-- Every job, ended ones included: what it is now. `version` only rises.
CREATE TABLE jobs (
  job_id text PRIMARY KEY,
  pool text NOT NULL,
  queue text NOT NULL,
  namespace text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  state text NOT NULL,
  version bigint NOT NULL,
  attempt integer NOT NULL,
  reason text NOT NULL,
  message text NOT NULL,
  slots integer NOT NULL,
  priority integer NOT NULL,
  created_ms bigint NOT NULL,
  start_ms bigint NOT NULL,
  updated_ms bigint NOT NULL,
  placement_hash bigint NOT NULL,
  row bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX jobs_live ON jobs (pool)
  WHERE state NOT IN ('Succeeded', 'Failed', 'Cancelled', 'Rejected');

-- One row a fact, as it was published on fluxqueue.jobs.
CREATE TABLE job_events (
  job_id text NOT NULL,
  version bigint NOT NULL,
  time_ms bigint NOT NULL,
  state text NOT NULL,
  attempt integer NOT NULL,
  reason text NOT NULL,
  message text NOT NULL,
  PRIMARY KEY (job_id, version)
);

CREATE TABLE cycles (
  pool text NOT NULL,
  cycle_id bigint NOT NULL,
  requested bytea NOT NULL,
  answered boolean NOT NULL DEFAULT false,
  PRIMARY KEY (pool, cycle_id)
);
