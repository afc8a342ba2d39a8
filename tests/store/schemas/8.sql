-- A database of schema 8, as the program of commit bd4e59f made it. Not to be changed: what is out there does not change either.
CREATE TABLE resource (
    identity TEXT PRIMARY KEY NOT NULL,
    done INTEGER,
    owed INTEGER,
    cause TEXT,
    interrupted INTEGER,
    begun INTEGER,
    definition INTEGER,
    owes TEXT,
    sum INTEGER NOT NULL,
    sent TEXT,
    taken TEXT,
    parked TEXT,
    parked_until INTEGER,
    owned INTEGER,
    graph TEXT,
    thing INTEGER,
    removal TEXT,
    needs TEXT,
    verb TEXT,
    epoch INTEGER,
    cut TEXT,
    parked_for INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE whole (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    stamp INTEGER NOT NULL,
    reason TEXT,
    until INTEGER,
    rows INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    lasts INTEGER
) STRICT;
CREATE TABLE manifest (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    program TEXT NOT NULL,
    machine TEXT,
    unsound TEXT,
    sum INTEGER NOT NULL,
    written_at INTEGER
) STRICT;
CREATE TABLE lease (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO resource VALUES ('exec[a]', -2, 5, 'file[b]', NULL, NULL, NULL, NULL, -7959963407515183015, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO resource VALUES ('exec[c]', NULL, NULL, NULL, 13, NULL, NULL, NULL, 9203963066133602029, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO resource VALUES ('file[b]', 9, NULL, NULL, NULL, 6, 11, '["exec[a]","exec[c]"]', -1953287973229907248, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO resource VALUES ('file[made]', 4, NULL, NULL, NULL, NULL, NULL, NULL, 3030477941047476992, NULL, NULL, NULL, NULL, 13, 'g', -99, '{}', '["exec[c]","file[b]"]', NULL, NULL, NULL, NULL);
INSERT INTO resource VALUES ('file[parked]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, -7891343305867983147, NULL, NULL, 'the operator', 4102444800, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO resource VALUES ('password[p]', 3, NULL, NULL, NULL, NULL, NULL, NULL, 7761499350484935251, '{"password":"s"}', 'h', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO whole VALUES (1, 6, 'USR1', 4102444800, 6, -2804807960149404702, 1577854544207718623, NULL);
INSERT INTO manifest VALUES (1, '0.1.0', NULL, NULL, -4578169329519004444, NULL);
INSERT INTO lease VALUES (1, 3, -5797678669463612913);
PRAGMA user_version = 8;
