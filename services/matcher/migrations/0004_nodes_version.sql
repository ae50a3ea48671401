-- Grows with each change of the pool's nodes: who looks at them from elsewhere keeps them until then.
ALTER TABLE pools ADD COLUMN nodes_version bigint NOT NULL DEFAULT 0;
