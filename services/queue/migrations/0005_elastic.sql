-- Of an elastic job: to how many slots it grows. `slots` is what it holds, or, when it holds none, as many as it asks for.
-- 0: it is not elastic.
ALTER TABLE jobs ADD COLUMN most_slots integer NOT NULL DEFAULT 0;
