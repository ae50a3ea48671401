-- Of the jobspec last sent; 0: by a version that did not count it. All replicas sum it up by namespace and queue.
ALTER TABLE workloads ADD COLUMN jobspec_bytes bigint NOT NULL DEFAULT 0;
