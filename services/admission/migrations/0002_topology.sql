-- "required: zone, preferred: rack", as the jobspec last sent says it; empty: neither.
ALTER TABLE workloads ADD COLUMN topology text NOT NULL DEFAULT '';
