-- Written by the binder only.

-- Jobs that hold an allocation: from Allocated until they are over or wait again.
CREATE TABLE jobs (
  job_id text PRIMARY KEY,
  partition integer NOT NULL,  -- of fluxqueue.jobs
  pool text NOT NULL,
  version bigint NOT NULL,     -- of `fact`
  attempt integer NOT NULL,
  fact bytea NOT NULL,         -- events.v1.JobFact: the attempt's first, or Stopping
  failed boolean NOT NULL,     -- BindFailed was said
  stopped boolean NOT NULL,    -- JobStopped was said
  resumed boolean NOT NULL     -- its suspend was taken away
);
CREATE INDEX jobs_partition ON jobs (partition);

-- Which pod has which slot. 'taken' is committed before the call that starts the pod is made.
CREATE TABLE slots (
  job_id text NOT NULL,
  attempt integer NOT NULL,
  part integer NOT NULL,
  slot integer NOT NULL,
  node text NOT NULL,
  pod_uid text NOT NULL,
  pod_name text NOT NULL,
  namespace text NOT NULL,
  state text NOT NULL CHECK (state IN ('taken', 'bound', 'ended', 'fenced')),
  bound_once boolean NOT NULL,  -- a pod was bound in it: counts for JobBound
  succeeded boolean NOT NULL,   -- its one completion is done: never used again
  PRIMARY KEY (job_id, attempt, part, slot)
);
