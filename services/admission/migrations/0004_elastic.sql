-- With how many slots an elastic workload may start, as the jobspec last sent says it; 0: with all of them.
ALTER TABLE workloads ADD COLUMN min_slots integer NOT NULL DEFAULT 0;
