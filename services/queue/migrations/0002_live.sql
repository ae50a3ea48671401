-- An update that changes no indexed column touches no index (HOT). `state` was one, by the predicate of jobs_live, and
-- changes with each update; `live` changes once.
ALTER TABLE jobs ADD COLUMN live boolean NOT NULL
  GENERATED ALWAYS AS (state NOT IN ('Succeeded', 'Failed', 'Cancelled', 'Rejected')) STORED;
DROP INDEX jobs_live;
CREATE INDEX jobs_live ON jobs (pool) WHERE live;
