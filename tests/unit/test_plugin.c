// SPDX-License-Identifier: Apache-2.0
/* Device plugins and gRPC: our client meets our server, over a unix socket. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/plugin.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "deviceplugin.pb-c.h"
#include "tests/unit/rpcloop.h"
#include "tests/unit/tmpdir.h"

#define SERVICE "/v1beta1.DevicePlugin/"

struct scene {
	struct rpcloop loop;
	char *dir;
	const char *socket;
	struct plugin *plugin;
	bool started, ended; /* all of them */
	int alive;
	int start_code;
	struct gs_err start_err;
	int bad_choice; /* prefer() gives what was not asked for */
	/* Of the last call. */
	bool done;
	int code;
	struct gs_err err;
	struct gs_buf text; /* names of devices, or annotations, of each container */
};

static int prefer(const struct plugin_snapshot *snapshot, const struct plugin_wish *wish,
		  struct gs_strv *ret, void *arg, struct gs_err *err)
{
	const struct scene *s = arg;

	/* The last ones, to be told from what a kubelet would take. */
	for (size_t i = 0; i < wish->size; i++)
		gs_strv_add(ret, wish->available.v[wish->available.n - 1 - i]);
	if (s->bad_choice == 1)
		gs_strv_add(ret, wish->available.v[0]);
	if (s->bad_choice == 2)
		(void)strcpy(ret->v[0], "z");
	if (s->bad_choice == 3)
		return gs_err_set(err, ENOSPC, "only one card has a free device");
	return 0;
}

static int allocate(const struct plugin_snapshot *snapshot, const struct gs_strv *ids,
		    struct plugin_answer *answer, void *arg, struct gs_err *err)
{
	cleanup_free char *all = gs_strv_join(ids);

	plugin_annotate(answer, "gpushare.k8s.io/grant", all);
	plugin_annotate(answer, "n", ids->n > 1 ? "many" : "one");
	return 0;
}

static void on_started(int code, const struct gs_err *err, void *arg)
{
	struct scene *s = arg;

	s->started = true;
	s->start_code = code;
	s->start_err = *err;
}

static void on_ended(void *arg)
{
	struct scene *s = arg;

	s->ended = --s->alive == 0;
}

static void plugin_begin(struct scene *s, bool prefers)
{
	const struct plugin_ops ops = {
		.prefer = prefers ? prefer : NULL,
		.allocate = allocate,
		.started = on_started,
		.ended = on_ended,
		.arg = s,
	};

	s->started = s->ended = false;
	s->alive++;
	s->plugin = plugin_new(s->loop.rpc, s->socket, &ops);
	rpcloop_until(&s->loop, &s->started);
}

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));

	rpcloop_begin(&s->loop);
	s->dir = tmpdir_make();
	s->socket = tmpdir_path(s->dir, "p.sock");
	plugin_begin(s, true);
	assert_int_equal(s->start_code, 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	rpcloop_end(&s->loop);
	assert_true(s->ended);
	tmpdir_remove(s->dir);
	gs_buf_free(&s->text);
	free(s);
	return 0;
}

static void on_done(int code, const ProtobufCMessage *answer, const struct gs_err *err, void *arg)
{
	struct scene *s = arg;

	s->done = true;
	s->code = code;
	s->err = *err;
	gs_buf_free(&s->text);
	gs_buf_adds(&s->text, "");
	if (!answer)
		return;
	if (answer->descriptor == &v1beta1__allocate_response__descriptor) {
		const V1beta1__AllocateResponse *all = (const V1beta1__AllocateResponse *)answer;

		for (size_t i = 0; i < all->n_container_responses; i++) {
			const V1beta1__ContainerAllocateResponse *one = all->container_responses[i];

			for (size_t k = 0; k < one->n_annotations; k++)
				gs_buf_addf(&s->text, "%s=%s ", one->annotations[k]->key,
					    one->annotations[k]->value);
			gs_buf_addc(&s->text, ';');
		}
	}
	if (answer->descriptor == &v1beta1__preferred_allocation_response__descriptor) {
		const V1beta1__PreferredAllocationResponse *all =
			(const V1beta1__PreferredAllocationResponse *)answer;

		for (size_t i = 0; i < all->n_container_responses; i++) {
			for (size_t k = 0; k < all->container_responses[i]->n_deviceids; k++)
				gs_buf_addf(&s->text, "%s ",
					    all->container_responses[i]->deviceids[k]);
			gs_buf_addc(&s->text, ';');
		}
	}
	if (answer->descriptor == &v1beta1__device_plugin_options__descriptor) {
		const V1beta1__DevicePluginOptions *options =
			(const V1beta1__DevicePluginOptions *)answer;

		gs_buf_addf(&s->text, "%d %d", options->pre_start_required,
			    options->get_preferred_allocation_available);
	}
}

static void call(struct scene *s, const char *method, const ProtobufCMessage *request,
		 const ProtobufCMessageDescriptor *type, unsigned int ms)
{
	s->done = false;
	rpc_call(s->loop.rpc, s->socket, method, request, type, ms, on_done, s);
	rpcloop_until(&s->loop, &s->done);
}

/* @ids: one string a device; if @twice, a second container asks for those from the second on. */
static void ask_allocate(struct scene *s, char *const *ids, size_t n, bool twice)
{
	V1beta1__ContainerAllocateRequest one = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest other = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *both[] = { &one, &other };
	V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;

	one.devices_ids = (char **)ids;
	one.n_devices_ids = n;
	if (twice) {
		other.devices_ids = one.devices_ids + 1;
		other.n_devices_ids = n - 1;
	}
	request.container_requests = both;
	request.n_container_requests = twice ? 2 : 1;
	call(s, SERVICE "Allocate", &request.base, &v1beta1__allocate_response__descriptor, 10000);
}

static void ask_preferred(struct scene *s, char *const *ids, size_t n, size_t must, int size)
{
	V1beta1__ContainerPreferredAllocationRequest one =
		V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	V1beta1__ContainerPreferredAllocationRequest *all[] = { &one };
	V1beta1__PreferredAllocationRequest request = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;

	one.available_deviceids = (char **)ids;
	one.n_available_deviceids = n;
	one.must_include_deviceids = (char **)ids;
	one.n_must_include_deviceids = must;
	one.allocation_size = size;
	request.container_requests = all;
	request.n_container_requests = 1;
	call(s, SERVICE "GetPreferredAllocation", &request.base,
	     &v1beta1__preferred_allocation_response__descriptor, 10000);
}

#define refused(s, errno_, text)                                           \
	do {                                                               \
		assert_int_equal((s)->code, -(errno_));                    \
		if (!strstr((s)->err.msg, text))                           \
			fail_msg("'%s' lacks '%s'", (s)->err.msg, (text)); \
	} while (0)

static void allocates(void **state)
{
	static char *const ids[] = { (char *)"b", (char *)"a" };
	static char *const sick[] = { (char *)"a", (char *)"c" };
	static char *const none[] = { (char *)"nothing\nlike it" };
	static char *const twice[] = { (char *)"a", (char *)"a" };
	struct scene *s = *state;

	ask_allocate(s, ids, 2, false);
	refused(s, ECONNREFUSED, "not known yet");
	plugin_publish(s->plugin, rpcloop_snapshot("a b@1 c!"));
	ask_allocate(s, ids, 2, false);
	assert_int_equal(s->code, 0);
	assert_string_equal(s->text.data, "gpushare.k8s.io/grant=b,a n=many ;");
	/* the kubelet takes them in the order in which it asked */
	ask_allocate(s, ids, 2, true);
	assert_string_equal(s->text.data,
			    "gpushare.k8s.io/grant=b,a n=many ;gpushare.k8s.io/grant=a n=one ;");
	ask_allocate(s, sick, 2, false);
	refused(s, EBUSY, "device c is not to be had now");
	ask_allocate(s, none, 1, false);
	refused(s, ENOENT, "there is no device nothing?like it");
	ask_allocate(s, twice, 2, false);
	refused(s, EINVAL, "device a is asked for twice");
	ask_allocate(s, ids, 0, false);
	refused(s, EINVAL, "no devices are asked for");
	/* Another truth: the one before is freed. */
	plugin_publish(s->plugin, rpcloop_snapshot("a c"));
	ask_allocate(s, sick, 2, false);
	assert_int_equal(s->code, 0);
	assert_int_equal(rpcloop_snapshots(), 1);
}

static void ask_nothing_preferred(struct scene *s, char *const *ids, size_t n, size_t must,
				  int size)
{
	ask_preferred(s, ids, n, must, size);
	assert_int_equal(s->code, 0);
	assert_string_equal(s->text.data, ";");
}

static void prefers(void **state)
{
	static char *const ids[] = { (char *)"a", (char *)"b", (char *)"c" };
	struct scene *s = *state;

	plugin_publish(s->plugin, rpcloop_snapshot("a b c"));
	ask_preferred(s, ids, 3, 0, 2);
	assert_int_equal(s->code, 0);
	assert_string_equal(s->text.data, "c b ;");
	/* Only what is there and healthy, whatever the kubelet still thinks. */
	plugin_publish(s->plugin, rpcloop_snapshot("a b c!"));
	ask_preferred(s, ids, 3, 0, 2);
	assert_string_equal(s->text.data, "b a ;");
	plugin_publish(s->plugin, rpcloop_snapshot("a b c"));
	/*
	 * What can't be chosen is left to the kubelet, which fails a pod for good where it is told
	 * of an error: too many, fewer than must be in it, none.
	 */
	ask_nothing_preferred(s, ids, 3, 0, 4);
	ask_nothing_preferred(s, ids, 3, 2, 1);
	ask_nothing_preferred(s, ids, 3, 0, -1);
	/* What a choice lacks is found: one that must be in it, too many, one that is not there. */
	ask_nothing_preferred(s, ids, 3, 1, 1);
	for (s->bad_choice = 1; s->bad_choice <= 3; s->bad_choice++)
		ask_nothing_preferred(s, ids, 3, 0, 2);
	/* Nothing is known yet. */
	plugin_free(s->plugin);
	plugin_begin(s, true);
	ask_nothing_preferred(s, ids, 3, 0, 1);
}

static void options(void **state)
{
	V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
	struct scene *s = *state;

	call(s, SERVICE "GetDevicePluginOptions", &empty.base,
	     &v1beta1__device_plugin_options__descriptor, 10000);
	assert_string_equal(s->text.data, "0 1");
	call(s, SERVICE "PreStartContainer", &empty.base,
	     &v1beta1__pre_start_container_response__descriptor, 10000);
	assert_int_equal(s->code, 0);
	plugin_free(s->plugin);
	plugin_begin(s, false);
	assert_int_equal(s->start_code, 0);
	call(s, SERVICE "GetDevicePluginOptions", &empty.base,
	     &v1beta1__device_plugin_options__descriptor, 10000);
	assert_string_equal(s->text.data, "0 0");
}

static void what_is_wrong_on_the_wire(void **state)
{
	V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
	V1beta1__CDIDevice large = V1BETA1__CDIDEVICE__INIT;
	V1beta1__NUMANode number = V1BETA1__NUMANODE__INIT;
	struct scene *s = *state;

	call(s, SERVICE "Reboot", &empty.base, &v1beta1__empty__descriptor, 10000);
	refused(s, EOPNOTSUPP, "no such method");
	/* A number where the list of containers is due. */
	number.id = 1;
	call(s, SERVICE "Allocate", &number.base, &v1beta1__empty__descriptor, 10000);
	refused(s, EINVAL, "the request is no v1beta1.AllocateRequest");
	large.name = gs_calloc(1, (256 << 10) + 1);
	(void)memset(large.name, 'x', 256 << 10);
	call(s, SERVICE "Allocate", &large.base, &v1beta1__empty__descriptor, 10000);
	free(large.name);
	refused(s, EMSGSIZE, "larger than max");
	/* A stream is not one message, and goes on. */
	call(s, SERVICE "ListAndWatch", &empty.base, &v1beta1__empty__descriptor, 300);
	refused(s, ETIMEDOUT, "ListAndWatch");
	/* All of that did it no harm. */
	call(s, SERVICE "PreStartContainer", &empty.base, &v1beta1__empty__descriptor, 10000);
	assert_int_equal(s->code, 0);
}

static void nobody_there(void **state)
{
	V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct scene *s = *state;

	s->socket = tmpdir_path(s->dir, "q.sock");
	call(s, SERVICE "Allocate", &empty.base, &v1beta1__empty__descriptor, 10000);
	refused(s, ECONNREFUSED, "q.sock");
	/* One who listens and never says a word. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", s->socket);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 4), 0);
	call(s, SERVICE "Allocate", &empty.base, &v1beta1__empty__descriptor, 300);
	refused(s, ETIMEDOUT, "q.sock");
	/* The end comes while another such call waits, and does not wait for it. */
	s->done = false;
	rpc_call(s->loop.rpc, s->socket, SERVICE "Allocate", &empty.base,
		 &v1beta1__empty__descriptor, 600000, on_done, s);
	(void)rpcloop_step(&s->loop, -1, 100);
	assert_int_equal(rpc_free(s->loop.rpc), 0);
	assert_true(s->done);
	assert_int_equal(s->code, -ECANCELED);
	(void)close(s->loop.fd);
	(void)close(fd);
	rpcloop_begin(&s->loop);
}

static void sockets(void **state)
{
	struct scene *s = *state;
	struct plugin *old;
	struct stat st;

	assert_int_equal(stat(s->socket, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* In the place of one that is about to end. */
	plugin_free(s->plugin);
	plugin_begin(s, true);
	assert_int_equal(s->start_code, 0);
	assert_true(tmpdir_has(s->dir, "p.sock"));
	plugin_free(s->plugin);
	rpcloop_until(&s->loop, &s->ended);
	assert_false(tmpdir_has(s->dir, "p.sock"));
	/* One that ends does not take the name from another that has it by now. */
	plugin_begin(s, true);
	old = s->plugin;
	plugin_begin(s, true);
	plugin_free(old);
	while (s->alive > 1)
		(void)rpcloop_step(&s->loop, -1, 10);
	assert_true(tmpdir_has(s->dir, "p.sock"));
	s->socket = tmpdir_path(s->dir, "no/such/folder.sock");
	plugin_begin(s, true);
	assert_int_equal(s->start_code, -EADDRNOTAVAIL);
	assert_non_null(strstr(s->start_err.msg, "folder.sock"));
}

struct crowd {
	bool enough;
	int refused, others;
};

static void on_crowd(int code, const ProtobufCMessage *answer, const struct gs_err *err, void *arg)
{
	struct crowd *crowd = arg;

	if (code == -EMSGSIZE && strstr(err->msg, "too many calls"))
		crowd->refused++;
	else
		crowd->others++;
	crowd->enough = crowd->refused >= 2;
}

/* Streams that stay: the 65th is refused, and the end waits for none of them. */
static void too_many(void **state)
{
	V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
	struct scene *s = *state;
	struct crowd crowd = { 0 };

	for (int i = 0; i < 66; i++)
		rpc_call(s->loop.rpc, s->socket, SERVICE "ListAndWatch", &empty.base,
			 &v1beta1__empty__descriptor, 600000, on_crowd, &crowd);
	rpcloop_until(&s->loop, &crowd.enough);
	assert_int_equal(crowd.others, 0);
	assert_int_equal(rpc_free(s->loop.rpc), 0);
	assert_int_equal(crowd.refused, 2);
	assert_int_equal(crowd.others, 64);
	(void)close(s->loop.fd);
	rpcloop_begin(&s->loop);
}

/* Every signal that can be is blocked in all threads but ours. */
static void signals(void **state)
{
	cleanup_dir DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	int n = 0;

	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		cleanup_free char *path = gs_asprintf("/proc/self/task/%s/status", entry->d_name);
		char line[256];
		unsigned long long blocked = 0;
		FILE *file;

		if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == getpid())
			continue;
		file = fopen(path, "re");
		if (!file)
			continue;
		while (fgets(line, sizeof(line), file))
			if (strncmp(line, "SigBlk:", 7) == 0)
				blocked = strtoull(line + 7, NULL, 16);
		(void)fclose(file);
		assert_true(blocked & (1ULL << (SIGTERM - 1)));
		assert_true(blocked & (1ULL << (SIGCHLD - 1)));
		n++;
	}
	assert_true(n > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(allocates, setup, teardown),
		cmocka_unit_test_setup_teardown(prefers, setup, teardown),
		cmocka_unit_test_setup_teardown(options, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_wrong_on_the_wire, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_there, setup, teardown),
		cmocka_unit_test_setup_teardown(sockets, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(signals, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
