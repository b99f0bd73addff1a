// SPDX-License-Identifier: Apache-2.0
/* Command lines: of containerd, podman and CRI-O, and those on which runc and crun disagree. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "runtime/argv.h"

#define WORDS_MAX 40

/* Words with blanks between them ("" for an empty one), and what describe() says of them. */
struct row {
	const char *line, *want;
};

struct words {
	char *text;
	char *argv[WORDS_MAX + 1];
	int argc;
};

static struct words split(const char *line)
{
	static char self[] = "gpushare-runtime";
	struct words w = { .text = strdup(line) };
	char *save = NULL;

	w.argv[w.argc++] = self;
	for (char *p = strtok_r(w.text, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		assert_true(w.argc < WORDS_MAX);
		w.argv[w.argc++] = strcmp(p, "\"\"") == 0 ? p + 2 : p;
	}
	w.argv[w.argc] = NULL;
	return w;
}

static void add(struct gs_buf *out, const char *key, const char *value)
{
	if (value)
		gs_buf_addf(out, " %s=%s", key, value);
}

static char *describe(const struct command *cmd)
{
	static const char *const verbs[] = {
		[VERB_OTHER] = "other",	    [VERB_CREATE] = "create", [VERB_RUN] = "run",
		[VERB_RESTORE] = "restore", [VERB_DELETE] = "delete",
	};
	struct gs_buf out = { 0 };

	gs_buf_adds(&out, verbs[cmd->verb]);
	add(&out, "bundle", cmd->bundle);
	add(&out, "id", cmd->id);
	add(&out, "pid-file", cmd->pid_file);
	add(&out, "log", cmd->log);
	add(&out, "log-format", cmd->log_format);
	add(&out, "root", cmd->root);
	return gs_buf_steal(&out);
}

static void expect_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct words w = split(rows[i].line);
		cleanup_free char *got = NULL;
		struct gs_err err = { 0 };
		struct command cmd;

		if (argv_read(w.argc, w.argv, &cmd, &err) != 0)
			fail_msg("%s: %s", rows[i].line, err.msg);
		got = describe(&cmd);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: %s", rows[i].line, got);
		free(w.text);
	}
}

#define TASK "/srv/node/cri/state/io.containerd.runtime.v2.task/k8s.io/"
#define CID "fcf3716e423554cfb730322365ae54b3dfbe764bbced708d99ac44c394f3c9ee"
#define BUNDLE TASK CID
#define SHIM "--root /run/containerd/runc/k8s.io --log " BUNDLE "/log.json --log-format json "
#define SAID " log=" BUNDLE "/log.json log-format=json root=/run/containerd/runc/k8s.io"

/* As containerd's shim calls: recorded with 1.6.20, CRI and ctr. */
static void containerd(void **state)
{
	static const struct row rows[] = {
		{ SHIM "create --bundle " BUNDLE " --pid-file " BUNDLE "/init.pid " CID,
		  "create bundle=" BUNDLE " id=" CID " pid-file=" BUNDLE "/init.pid" SAID },
		{ SHIM "start " CID, "other id=" CID SAID },
		{ SHIM "exec --process /tmp/runc-process100817961 --detach --pid-file " BUNDLE
		       "/e1.pid " CID,
		  "other id=" CID " pid-file=" BUNDLE "/e1.pid" SAID },
		{ SHIM "ps --format json " CID, "other id=" CID SAID },
		{ SHIM "pause " CID, "other id=" CID SAID },
		{ SHIM "resume " CID, "other id=" CID SAID },
		{ SHIM "kill " CID " 9", "other id=" CID SAID },
		{ SHIM "kill --all " CID " 9", "other id=" CID SAID },
		{ SHIM "update --resources - " CID, "other id=" CID SAID },
		{ SHIM "delete " CID, "delete id=" CID SAID },
		{ SHIM "delete --force " CID, "delete id=" CID SAID },
		{ "--root /run/containerd/runc/default --log /b/c-native/log.json "
		  "--log-format json "
		  "create --bundle /b/c-native --pid-file /b/c-native/init.pid c-native",
		  "create bundle=/b/c-native id=c-native pid-file=/b/c-native/init.pid "
		  "log=/b/c-native/log.json log-format=json root=/run/containerd/runc/default" },
		/* the shim with its systemd switch and a console; containerd 2's features */
		{ "--root /r --log /l --log-format json --systemd-cgroup create --bundle /b "
		  "--pid-file /p --console-socket /c --no-new-keyring --preserve-fds 2 ID",
		  "create bundle=/b id=ID pid-file=/p log=/l log-format=json root=/r" },
		{ "features", "other" },
		{ "--version", "other" },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

#define USERDATA "/srv/node/pod/run/overlay-containers/bd86e4d7ba30/userdata"

/* As conmon and podman call (recorded with podman 4.3.1), and CRI-O's conmon. */
static void conmon(void **state)
{
	static const struct row rows[] = {
		{ "--log-format=json --log " USERDATA "/oci-log create --bundle " USERDATA
		  " --pid-file " USERDATA "/pidfile bd86e4d7ba30",
		  "create bundle=" USERDATA " id=bd86e4d7ba30 pid-file=" USERDATA
		  "/pidfile log=" USERDATA "/oci-log log-format=json" },
		{ "start bd86e4d7ba30", "other id=bd86e4d7ba30" },
		{ "delete --force bd86e4d7ba30", "delete id=bd86e4d7ba30" },
		{ "--systemd-cgroup --root=/run/runc --log=/x create --bundle B --pid-file P "
		  "--no-pivot --console-socket S I",
		  "create bundle=B id=I pid-file=P log=/x root=/run/runc" },
		{ "--cgroup-manager cgroupfs create --bundle B --pid-file P I",
		  "create bundle=B id=I pid-file=P" },
		{ "--cgroup-manager=systemd --root /r create --bundle B I",
		  "create bundle=B id=I root=/r" },
		{ "restore --bundle B --pid-file P --detach --image-path IMG --work-path B I",
		  "restore bundle=B id=I pid-file=P" },
		{ "--root=/run/runc exec --pid-file /p --process /proc.json --detach "
		  "--console-socket /s I",
		  "other id=I pid-file=/p root=/run/runc" },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

/* docker: the words of runtimeArgs stand in front of --root. */
static void docker(void **state)
{
	static const struct row rows[] = {
		{ "--debug --root /var/run/docker/runtime-runc/moby --log /b/log.json "
		  "--log-format json create --bundle /b --pid-file /b/init.pid ID",
		  "create bundle=/b id=ID pid-file=/b/init.pid log=/b/log.json log-format=json "
		  "root=/var/run/docker/runtime-runc/moby" },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

/* The verb is the first word that is no option and no option's value. */
static void create_is_not_always_the_verb(void **state)
{
	static const struct row rows[] = {
		{ "--root /run/x state create", "other id=create root=/run/x" },
		{ "--root create state X", "other id=X root=create" },
		{ "--log create start X", "other id=X log=create" },
		{ "--log-format create kill X 9", "other id=X log-format=create" },
		{ "kill create 9", "other id=create" },
		{ "delete create", "delete id=create" },
		{ "run --bundle B ID", "run bundle=B id=ID" },
		{ "run -d --bundle B ID", "run bundle=B id=ID" },
		{ "run --detach --keep --no-subreaper --bundle B ID", "run bundle=B id=ID" },
		{ "run -detach -keep -no-pivot --bundle B ID", "run bundle=B id=ID" },
		{ "create --bundle create create", "create bundle=create id=create" },
		{ "--criu create run X", "run id=X" },
		{ "--rootless create state X", "other id=X" },
		{ "--log-level create state X", "other id=X" },
		{ "exec X create", "other id=X" },
		{ "exec X create --log L", "other id=X" },
		/* options of tomorrow: with a value and without */
		{ "--newopt value create --bundle B I", "create bundle=B id=I" },
		{ "--newflag create --bundle B I", "create bundle=B id=I" },
		{ "--newopt=create state X", "other id=X" },
		{ "--newflag delete start", "delete id=start" },
		/* crun takes beginnings of its options; to runc they are an error */
		{ "--log-l debug --debug create --bundle B I", "create bundle=B id=I" },
		{ "--cgroup-m cgroupfs --debug create --bundle B I", "create bundle=B id=I" },
		{ "--log-l=debug --debug create --bundle B I", "create bundle=B id=I" },
		{ "--deb --sys create --bundle B I", "create bundle=B id=I" },
		{ "--c cgroupfs --debug create --bundle B I", "create bundle=B id=I" },
		{ "-- create --bundle B I", "create bundle=B id=I" },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

static void no_verb_at_all(void **state)
{
	static const struct row rows[] = {
		{ "", "other" },
		{ "-v", "other" },
		{ "--help", "other" },
		{ "-h", "other" },
		{ "help create", "other id=create" },
		{ "--root", "other" },
		{ "--root /x", "other root=/x" },
		{ "\"\" create", "other id=create" },
		{ "- create", "other id=create" },
		{ "list", "other" },
	};
	struct gs_err err = { 0 };
	struct command cmd;
	char *none[] = { NULL };

	expect_rows(rows, GS_ARRAY_SIZE(rows));
	/* execve(2) allows an empty argument list */
	assert_int_equal(argv_read(0, none, &cmd, &err), 0);
	assert_int_equal(cmd.verb, VERB_OTHER);
}

/* Forms that runc 1.1.5 and crun 1.8.1 take for the same, or only one of them takes at all. */
static void safe_bundle_forms(void **state)
{
	static const struct row rows[] = {
		{ "create --bundle=X ID", "create bundle=X id=ID" },
		{ "create --bundle X ID", "create bundle=X id=ID" },
		{ "create -b X ID", "create bundle=X id=ID" },
		{ "create --b X ID", "create bundle=X id=ID" },
		{ "create --b=X ID", "create bundle=X id=ID" },
		{ "create -bX ID", "create bundle=X id=ID" }, /* runc refuses it */
		{ "create -b/x/y ID", "create bundle=/x/y id=ID" }, /* runc refuses it */
		{ "create -bundl ID", "create bundle=undl id=ID" }, /* runc refuses it */
		{ "create ID --bundle X", "create bundle=X id=ID" }, /* crun refuses it */
		{ "create --bundle A --bundle B ID", "create bundle=B id=ID" },
		{ "create -b A --bundle=B ID", "create bundle=B id=ID" },
		{ "create --bundle=B -b A ID", "create bundle=A id=ID" },
		{ "create --bundle X -- ID", "create bundle=X id=ID" },
		{ "create --bundle X -- --bundle", "create bundle=X id=--bundle" },
		{ "create --bundle -- ID", "create bundle=-- id=ID" },
		{ "create --bundle -b ID", "create bundle=-b id=ID" },
		{ "create --bundle a=b ID", "create bundle=a=b id=ID" },
		{ "create --bundle=a=b ID", "create bundle=a=b id=ID" },
		{ "create --bundle ID", "create bundle=ID" },
		{ "create ID", "create id=ID" },
		{ "create --pid-file --bundle ID", "create id=ID pid-file=--bundle" },
		{ "create --console-socket --bundle ID", "create id=ID" },
		{ "create --preserve-fds 3 --bundle X ID", "create bundle=X id=ID" },
		{ "create --pid-file=P --bundle=X ID", "create bundle=X id=ID pid-file=P" },
		{ "create -pid-file P --bundle X ID", "create bundle=X id=ID pid-file=P" },
		{ "create --no-pivot=true --bundle X ID", "create bundle=X id=ID" },
		{ "create --bundle X ID EXTRA", "create bundle=X id=ID" },
		{ "restore --image-path bundle --bundle X ID", "restore bundle=X id=ID" },
		{ "restore --lsm-profile --bundle --bundle X ID", "restore bundle=X id=ID" },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

/* Forms that mean another bundle or another config file to one of the two. */
static void refuses_what_is_unclear(void **state)
{
	static const struct {
		const char *args, *words;
	} rows[] = {
		{ "-b=X ID", "use --bundle" },
		{ "-bundle X ID", "use --bundle" },
		{ "-bundle=X ID", "use --bundle" },
		{ "--bund X ID", "write it out" },
		{ "--bund=X ID", "write it out" },
		{ "--conf x.json ID", "write it out" },
		{ "--pid-fil P ID", "write it out" },
		{ "--config x.json --bundle B ID", "config file" },
		{ "--config=x.json --bundle B ID", "config file" },
		{ "-config x.json ID", "config file" },
		{ "-config=x.json ID", "config file" },
		{ "-f x.json --bundle B ID", "config file" },
		{ "-fx ID", "-fx" },
		{ "-fother.json ID", "-fother.json" },
		{ "-f=other.json ID", "-f=other.json" },
		{ "-db DIR ID", "-db" },
		{ "-dbDIR ID", "-dbDIR" },
		{ "-db/some/bundle ID", "-db/some/bundle" },
		{ "-db=/some/bundle ID", "-db=/some/bundle" },
		{ "-file-locks ID", "-file-locks" }, /* restore's alone */
		{ "-df other.json ID", "-df" },
		{ "-dfother.json ID", "-dfother.json" },
		{ "--bundle= ID", "--bundle=" },
		{ "--bundle \"\" ID", "--bundle" },
		{ "-b \"\" ID", "-b" },
		/* runc sorts options to the front: the first word becomes the value */
		{ "X ID --bundle", "--bundle" },
		{ "X ID -b", "-b" },
		{ "X ID --pid-file", "--pid-file" },
		{ "ID --bundle", "--bundle" },
	};
	static const char *const verbs[] = { "create", "run" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows) * GS_ARRAY_SIZE(verbs); i++) {
		const char *args = rows[i / 2].args;
		cleanup_free char *line = NULL;
		struct gs_err err = { 0 };
		struct command cmd;
		struct words w;
		int r;

		assert_true(asprintf(&line, "--log /l --log-format json %s %s", verbs[i % 2],
				     args) > 0);
		w = split(line);
		r = argv_read(w.argc, w.argv, &cmd, &err);
		if (r != -EINVAL || !strstr(err.msg, rows[i / 2].words))
			fail_msg("%s: %d, \"%s\"", line, r, err.msg);
		/* the error still reaches the caller's log */
		assert_string_equal(cmd.log, "/l");
		assert_string_equal(cmd.log_format, "json");
		assert_int_equal(argv_read(w.argc, w.argv, &cmd, NULL), -EINVAL);
		free(w.text);
	}
}

/* Other verbs have no bundle of ours: nothing about them is an error. */
static void other_verbs_are_never_refused(void **state)
{
	static const struct row rows[] = {
		{ "delete -b=X ID", "delete id=ID" }, { "delete -f ID", "delete id=ID" },
		{ "delete -fr ID", "delete id=ID" },  { "state --bund ID", "other id=ID" },
		{ "kill -a ID KILL", "other id=ID" }, { "list -q", "other" },
		{ "spec --bundle B", "other" },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

/* Every verb for a container goes to the runtime that made it, so its id must be found in each. */
static void finds_the_id_behind_every_verbs_options(void **state)
{
	static const char *const lines[] = {
		"exec -p /p.json ID",
		"exec --process=/p.json ID",
		"exec -t -d --cwd /tmp -e A=b --env C=d -u 0:0 --user 1 -g 5 "
		"-c CAP_KILL ID sh -c x",
		"exec --apparmor x --process-label y --cap z --preserve-fds 2 --cgroup c ID true",
		"exec --pidfd-socket /s --additional-gids 4 --console-socket /c ID a",
		"ps -f table ID",
		"ps --format=json ID",
		"ps ID -ef",
		"update -r /r.json ID",
		"update --cpu-quota 50000 --cpu-period 100000 --cpu-share 5 --memory 100 ID",
		"update --cpuset-cpus 0 --cpuset-mems 0 --pids-limit 4 --blkio-weight 10 ID",
		"update --memory-swap 1 --memory-reservation 1 --cpu-rt-period 1 "
		"--cpu-rt-runtime 1 ID",
		"update --l3-cache-schema x --mem-bw-schema y --cpu-idle 1 --cpu-burst 2 ID",
		"events --stats ID",
		"events --interval 5s ID",
		"checkpoint --image-path I --work-path W --parent-path P --page-server h:1 ID",
		"checkpoint --status-fd 3 --manage-cgroups-mode soft --empty-ns network "
		"--leave-running ID",
		"kill --all ID TERM",
		"state ID",
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(lines); i++) {
		const struct row row = { lines[i], "other id=ID" };

		expect_rows(&row, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containerd),
		cmocka_unit_test(conmon),
		cmocka_unit_test(docker),
		cmocka_unit_test(create_is_not_always_the_verb),
		cmocka_unit_test(no_verb_at_all),
		cmocka_unit_test(safe_bundle_forms),
		cmocka_unit_test(refuses_what_is_unclear),
		cmocka_unit_test(other_verbs_are_never_refused),
		cmocka_unit_test(finds_the_id_behind_every_verbs_options),
	};

	return cmocka_run_group_tests_name("argv", tests, NULL, NULL);
}
