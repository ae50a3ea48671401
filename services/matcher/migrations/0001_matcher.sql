-- Written by the matcher only. Bytes are protobuf messages of fluxqueue.events.v1 unless said.

-- One row a pool that this service has seen; `row` is fluxqueue.matcher.v1.PoolState.
CREATE TABLE pools (
  pool text PRIMARY KEY,
  partition integer NOT NULL,
  row bytea NOT NULL
);

-- What is held, and for a day what was.
CREATE TABLE allocations (
  job_id text NOT NULL,
  attempt integer NOT NULL,
  part integer NOT NULL,
  pool text NOT NULL,
  placement bytea NOT NULL,
  placement_hash bigint NOT NULL,
  released boolean NOT NULL DEFAULT false,
  released_at timestamptz,
  PRIMARY KEY (job_id, attempt, part)
);
CREATE INDEX allocations_live ON allocations (pool) WHERE NOT released;
CREATE INDEX allocations_released ON allocations (released_at) WHERE released;

CREATE TABLE graph_nodes (
  pool text NOT NULL,
  name text NOT NULL,
  uid text NOT NULL,
  ordinal bigint NOT NULL,
  node bytea NOT NULL,
  present boolean NOT NULL,
  PRIMARY KEY (pool, name)
);

CREATE TABLE specs (
  job_id text NOT NULL,
  part integer NOT NULL,
  revision integer NOT NULL,
  pool text NOT NULL,
  slots integer NOT NULL,
  jobspec text NOT NULL,
  PRIMARY KEY (job_id, part)
);
CREATE INDEX specs_pool ON specs (pool);

CREATE TABLE answers (
  pool text NOT NULL,
  cycle_id bigint NOT NULL,
  answer bytea NOT NULL,
  PRIMARY KEY (pool, cycle_id)
);
