-- Pods of one group are one job, whose uid is none of theirs. `pods`: theirs, in the order of their slots, with spaces
-- between them; empty: it is no group.
ALTER TABLE workloads DROP CONSTRAINT workloads_kind_check;
ALTER TABLE workloads ADD CONSTRAINT workloads_kind_check CHECK (kind IN ('Job', 'Pod', 'PodGroup'));
ALTER TABLE workloads ADD COLUMN pods text NOT NULL DEFAULT '';
