-- The jobs of a workload, as people name it.
CREATE INDEX jobs_by_name ON jobs (namespace, name);
