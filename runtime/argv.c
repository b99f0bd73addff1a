// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the command line of an OCI runtime. runc's parser is Go's flag package behind
 * urfave/cli, crun's is argp: "-b=X" is X to the one and "=X" to the other, "-bundle X" a long
 * option to the one and "-b undle" to the other, "--bund X" an error to the one and "--bundle X"
 * to the other. A wrapper that guesses may edit one bundle while the runtime starts another.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "runtime/argv.h"

enum slot { SLOT_NONE, SLOT_LOG, SLOT_LOG_FORMAT, SLOT_ROOT, SLOT_BUNDLE, SLOT_PID_FILE, SLOT_CONFIG };

struct option_row {
	const char *name; /* without dashes */
	enum slot slot;
};

/* Options that take a value, of runc 1.0-1.4 and crun 1.x. All others are flags. */
static const struct option_row global_values[] = {
	{ "log", SLOT_LOG },	       { "log-format", SLOT_LOG_FORMAT },
	{ "root", SLOT_ROOT },	       { "criu", SLOT_NONE },
	{ "rootless", SLOT_NONE },     { "cgroup-manager", SLOT_NONE },
	{ "log-level", SLOT_NONE },    { NULL, SLOT_NONE },
};

static const struct option_row verb_values[] = {
	{ "bundle", SLOT_BUNDLE },
	{ "config", SLOT_CONFIG }, /* crun */
	{ "pid-file", SLOT_PID_FILE },
	{ "console-socket", SLOT_NONE },
	{ "pidfd-socket", SLOT_NONE },
	{ "preserve-fds", SLOT_NONE },
	{ "image-path", SLOT_NONE },
	{ "work-path", SLOT_NONE },
	{ "manage-cgroups-mode", SLOT_NONE },
	{ "empty-ns", SLOT_NONE },
	{ "lsm-profile", SLOT_NONE },
	{ "lsm-mount-context", SLOT_NONE },
	{ NULL, SLOT_NONE },
};

/* After a global option that no table has: is the word behind it the verb, or its value? */
static const char *const known_verbs[] = {
	"checkpoint", "create", "delete", "events", "exec",   "features", "kill",
	"list",	      "mounts", "pause",  "ps",	    "restore", "resume",   "run",
	"spec",	      "start",	"state",  "update", NULL,
};

struct walk {
	int argc, i;
	char **argv;
	struct command *cmd;
	bool strict; /* the verb is one whose bundle we read */
};

static bool known_verb(const char *word)
{
	for (const char *const *v = known_verbs; *v; v++)
		if (strcmp(*v, word) == 0)
			return true;
	return false;
}

static const struct option_row *find(const struct option_row *rows, const char *name, size_t len)
{
	for (; rows->name; rows++)
		if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
			return rows;
	return NULL;
}

/* Is @name a beginning of an option with a value? getopt_long takes that for the whole name. */
static bool abbreviates(const struct option_row *rows, const char *name, size_t len)
{
	for (; rows->name; rows++)
		if (len && strlen(rows->name) > len && memcmp(rows->name, name, len) == 0)
			return true;
	return false;
}

static int unclear(const char *arg, const char *why, struct gs_err *err)
{
	return gs_err_set(err, EINVAL, "command line: \"%s\": %s", arg, why);
}

static int set(struct walk *w, enum slot slot, const char *value, const char *arg,
	       struct gs_err *err)
{
	switch (slot) {
	case SLOT_LOG:
		w->cmd->log = value;
		break;
	case SLOT_LOG_FORMAT:
		w->cmd->log_format = value;
		break;
	case SLOT_ROOT:
		w->cmd->root = value;
		break;
	case SLOT_BUNDLE:
		w->cmd->bundle = value;
		break;
	case SLOT_PID_FILE:
		w->cmd->pid_file = value;
		break;
	case SLOT_CONFIG:
		if (w->strict)
			return unclear(arg, "a config file other than the bundle's config.json "
					    "cannot be used with gpushare-runtime", err);
		break;
	case SLOT_NONE:
		break;
	}
	return 0;
}

/* An option that takes a value: behind '=', or the next word. */
static int take_value(struct walk *w, const struct option_row *row, const char *eq,
		      struct gs_err *err)
{
	const char *arg = w->argv[w->i];
	const char *value = eq ? eq + 1 : NULL;

	if (!value && w->i + 1 < w->argc)
		value = w->argv[++w->i];
	return value ? set(w, row->slot, value, arg, err) : 0;
}

static int long_option(struct walk *w, const struct option_row *rows, bool global,
		       struct gs_err *err)
{
	const char *arg = w->argv[w->i];
	const char *name = arg + (arg[1] == '-' ? 2 : 1);
	const char *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	const struct option_row *row = find(rows, name, len);

	if (row)
		return take_value(w, row, eq, err);
	if (w->strict && abbreviates(rows, name, len))
		return unclear(arg, "an abbreviated option, which not every runtime takes; "
				    "write it out", err);
	/* unknown to us: a flag, unless it is global and what follows is no verb */
	if (global && !eq && w->i + 2 < w->argc && w->argv[w->i + 1][0] != '-' &&
	    !known_verb(w->argv[w->i + 1]) && known_verb(w->argv[w->i + 2]))
		w->i++;
	return 0;
}

/* A word that begins with one dash, behind the verb. */
static int short_option(struct walk *w, struct gs_err *err)
{
	const char *arg = w->argv[w->i];
	const char *name = arg + 1;
	const char *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	const struct option_row *row;

	if (strcmp(name, "b") == 0) {
		static const struct option_row bundle = { "b", SLOT_BUNDLE };

		return take_value(w, &bundle, NULL, err);
	}
	row = find(verb_values, name, len);
	if (!w->strict)
		return row ? take_value(w, row, eq, err) : 0;
	if (strcmp(name, "f") == 0 && w->cmd->verb != VERB_RESTORE)
		return set(w, SLOT_CONFIG, NULL, arg, err);
	if (row && (row->slot == SLOT_BUNDLE || row->slot == SLOT_CONFIG))
		return unclear(arg, "runc and crun read this form differently; use --bundle", err);
	if (row) /* runc's long option with one dash; crun has no such short options */
		return take_value(w, row, eq, err);
	if (name[0] == 'b') {
		if (name[1] == '=' || strncmp(name, "bundle", len) == 0)
			return unclear(arg, "runc and crun read this form differently; "
					    "use --bundle", err);
		w->cmd->bundle = name + 1; /* crun's; runc refuses it */
		return 0;
	}
	/* crun takes clusters such as -db DIR; runc's flags with one dash are whole words */
	if (!eq && strcmp(name, "detach") != 0 && strcmp(name, "keep") != 0 &&
	    strncmp(name, "no-", 3) != 0 && len > 1 && len < 4 && strpbrk(name, "bf"))
		return unclear(arg, "several short options in one word; write them out", err);
	return 0;
}

static enum verb verb_of(const char *word)
{
	static const struct {
		const char *word;
		enum verb verb;
	} rows[] = {
		{ "create", VERB_CREATE },
		{ "run", VERB_RUN },
		{ "restore", VERB_RESTORE },
		{ "delete", VERB_DELETE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].word, word) == 0)
			return rows[i].verb;
	return VERB_OTHER;
}

/* Up to and with the verb; w->i is left behind it. */
static int walk_global(struct walk *w, struct gs_err *err)
{
	int r;

	for (; w->i < w->argc; w->i++) {
		const char *arg = w->argv[w->i];

		if (arg[0] != '-' || arg[1] == '\0') {
			w->cmd->verb = verb_of(arg);
			w->strict = w->cmd->verb != VERB_OTHER && w->cmd->verb != VERB_DELETE;
			w->i++;
			return 0;
		}
		if (strcmp(arg, "--") == 0)
			continue;
		r = long_option(w, global_values, true, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int walk_verb(struct walk *w, struct gs_err *err)
{
	bool options = true;
	int r;

	for (; w->i < w->argc; w->i++) {
		const char *arg = w->argv[w->i];

		if (!options || arg[0] != '-' || arg[1] == '\0') {
			if (!w->cmd->id)
				w->cmd->id = arg;
			continue;
		}
		if (strcmp(arg, "--") == 0) {
			options = false;
			continue;
		}
		r = arg[1] == '-' ? long_option(w, verb_values, false, err) : short_option(w, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int argv_read(int argc, char **argv, struct command *ret, struct gs_err *err)
{
	struct walk w = { .argc = argc, .i = 1, .argv = argv, .cmd = ret };
	int r;

	*ret = (struct command){ .verb = VERB_OTHER };
	r = walk_global(&w, err);
	if (r == 0)
		r = walk_verb(&w, err);
	return r;
}
