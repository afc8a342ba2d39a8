-- A database of schema 1, as the program of commit 3c70ed5 made it. Not to be changed: what is out there does not change either.
CREATE TABLE resource (
    identity TEXT PRIMARY KEY NOT NULL,
    done INTEGER,
    owed INTEGER,
    cause TEXT,
    interrupted INTEGER,
    begun INTEGER,
    definition INTEGER,
    owes TEXT,
    sum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE whole (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    stamp INTEGER NOT NULL,
    reason TEXT,
    until INTEGER,
    rows INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO resource VALUES ('exec[a]', -2, 5, 'file[b]', NULL, NULL, NULL, NULL, -7959963407515183015);
INSERT INTO resource VALUES ('exec[c]', NULL, NULL, NULL, 13, NULL, NULL, NULL, 9203963066133602029);
INSERT INTO resource VALUES ('file[b]', 9, NULL, NULL, NULL, 6, 11, '["exec[a]","exec[c]"]', -1953287973229907248);
INSERT INTO whole VALUES (1, 6, 'USR1', 4102444800, 3, 781104328031138916, -2600636026590949317);
PRAGMA user_version = 1;
