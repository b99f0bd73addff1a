// SPDX-License-Identifier: Apache-2.0
/* The agent's socket (include/gpushare/agent.h): packets in, packets out, root only. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/cluster_view.h"
#include "agent/plugins.h"
#include "agent/server.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"

/* One for each container that is being created, and a few people. */
#define CLIENTS_MAX 512
#define BACKLOG 128

struct client {
	struct server *server;
	uv_poll_t poll;
	int fd;
	bool closing;
	struct waiting *waiting;
	struct gs_buf out; /* an answer that is on its way; */
	size_t sent; /* so much of it is */
	struct client *next;
};

struct waiting {
	struct client *client;
	json_t *request;
	bool begun; /* it was served once */
	bool answered;
	bool busy; /* it is being served: what that changes is not news for it */
};

struct server {
	struct agent *agent;
	uv_poll_t poll;
	int fd;
	int lock; /* held as long as we live: who is the agent */
	int spare; /* a descriptor for the time when there is none; -1: given away */
	char *path;
	struct client *clients;
	unsigned int n_clients;
	uv_timer_t changed; /* set off by server_changed() */
	unsigned int open; /* its own handles that are not closed yet */
	bool serving; /* in on_changed() */
};

/* ---- Clients. */

/* The server itself goes when the last of its handles has closed. */
static void free_stopped(struct server *server)
{
	if (server->open || server->clients)
		return;
	free(server->path);
	free(server);
}

static void on_client_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;
	struct server *server = client->server;
	struct client **at = &server->clients;

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	server->n_clients--;
	(void)close(client->fd);
	if (client->waiting)
		json_decref(client->waiting->request);
	free(client->waiting);
	gs_buf_free(&client->out);
	free(client);
	free_stopped(server);
}

static void hang_up(struct client *client)
{
	if (client->closing)
		return;
	client->closing = true;
	uv_close((uv_handle_t *)&client->poll, on_client_closed);
}

static void on_ready(uv_poll_t *poll, int status, int events);

/*
 * Sends what there is room for. A client that does not read is waited for by nobody, nor asked what
 * else it wants.
 */
static void send_more(struct client *client)
{
	struct gs_buf *out = &client->out;

	while (client->sent < out->len && !client->closing) {
		size_t n = out->len - client->sent;

		if (n > GS_AGENT_PACKET_MAX)
			n = GS_AGENT_PACKET_MAX;
		if (send(client->fd, out->data + client->sent, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			client->sent += n;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			hang_up(client);
	}
	if (client->closing)
		return;
	if (client->sent == out->len)
		gs_buf_free(out);
	(void)uv_poll_start(&client->poll, (out->len ? UV_WRITABLE : UV_READABLE) | UV_DISCONNECT,
			    on_ready);
}

void server_answer(struct waiting *waiting, json_t *more, const struct gs_err *err)
{
	cleanup_json json_t *answer = json_pack("{s:i, s:b}", "v", GS_AGENT_VERSION, "ok", !err);
	struct client *client = waiting->client;
	cleanup_free char *text = NULL;
	cleanup_json json_t *mine = more;

	if (err)
		(void)json_object_set_new(answer, "error", json_string(err->msg));
	if (mine)
		(void)json_object_update(answer, mine);
	text = json_dumps(answer, JSON_COMPACT);
	waiting->answered = true;
	if (!text) {
		hang_up(client);
		return;
	}
	gs_buf_adds(&client->out, text);
	/* a full packet says that there is another */
	if (client->out.len % GS_AGENT_PACKET_MAX == 0)
		gs_buf_addc(&client->out, '\n');
	client->sent = 0;
	send_more(client);
}

static void serve(struct client *client)
{
	struct agent *agent = client->server->agent;
	struct waiting *waiting = client->waiting;
	bool first = !waiting->begun;

	if (waiting->busy || !ops_ready(agent, waiting->request))
		return;
	waiting->busy = waiting->begun = true;
	ops_serve(agent, waiting, waiting->request, first);
	waiting->busy = false;
	if (!waiting->answered)
		return;
	json_decref(waiting->request);
	free(waiting);
	client->waiting = NULL;
}

static void on_packet(struct client *client, const char *text, size_t len)
{
	struct gs_err err = { 0 };
	json_t *request = NULL;

	if (client->waiting || gs_json_parse("request", text, len, &request, &err) < 0 ||
	    json_integer_value(json_object_get(request, "v")) != GS_AGENT_VERSION) {
		json_decref(request);
		hang_up(client);
		return;
	}
	client->waiting = gs_calloc(1, sizeof(*client->waiting));
	client->waiting->client = client;
	client->waiting->request = request;
	serve(client);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
	static char packet[GS_AGENT_PACKET_MAX];
	struct client *client = poll->data;
	ssize_t n;

	if (client->out.len) {
		if (status < 0 || (events & UV_DISCONNECT))
			hang_up(client);
		else
			send_more(client);
		return;
	}
	n = status < 0 ? 0 : recv(client->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || n > (ssize_t)sizeof(packet)) /* hung up, or longer than any request */
		hang_up(client);
	else
		on_packet(client, packet, (size_t)n);
}

/*
 * With no descriptor left whoever waits at the socket would wait for as long as that lasts, and the
 * loop would be told of him without end. He is hung up on, and tries again when he likes.
 */
static void turn_away(struct server *server)
{
	if (server->spare >= 0)
		(void)close(server->spare);
	server->spare = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (server->spare >= 0)
		(void)close(server->spare);
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	told_log(&server->agent->told, GS_LOG_ERROR, "nobody can be answered", NULL, NULL,
		 "too many open files");
}

/*
 * Of those whom nobody owes an answer the one that came first: he asks nothing, or does not read
 * what he was told. NULL: none.
 */
static struct client *idle(const struct server *server)
{
	struct client *ret = NULL;

	for (struct client *client = server->clients; client; client = client->next)
		if (!client->waiting && !client->closing)
			ret = client;
	return ret;
}

/* Is there a place for one more? */
static bool make_room(struct server *server)
{
	struct client *client = server->n_clients < CLIENTS_MAX ? NULL : idle(server);

	if (client)
		hang_up(client);
	return client || server->n_clients < CLIENTS_MAX;
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
	struct server *server = poll->data;
	struct client *client;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)status;
	(void)events;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		turn_away(server);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid() ||
	    !make_room(server)) {
		(void)close(fd);
		return;
	}
	client = gs_calloc(1, sizeof(*client));
	/* there may be no room for it: the kernel has so much for all of root's programs */
	if (uv_poll_init(server->agent->loop, &client->poll, fd) < 0) {
		(void)close(fd);
		free(client);
		return;
	}
	client->server = server;
	client->fd = fd;
	client->next = server->clients;
	server->clients = client;
	server->n_clients++;
	client->poll.data = client;
	(void)uv_poll_start(&client->poll, UV_READABLE | UV_DISCONNECT, on_ready);
}

static void on_changed(uv_timer_t *timer)
{
	struct server *server = timer->data;

	server->serving = true;
	for (struct client *client = server->clients; client; client = client->next)
		if (client->waiting && !client->closing)
			serve(client);
	server->serving = false;
}

/*
 * From the loop, and not from in here: to serve a request may be to look at everything anew, and
 * whoever calls us is often amid what that would throw away.
 */
void server_changed(struct agent *agent)
{
	struct server *server = agent->server;

	plugins_changed(agent);
	cluster_view_changed(agent);

	/* what a request does may change something: this very round sees it as well */
	if (server && !server->serving)
		(void)uv_timer_start(&server->changed, on_changed, 0, 0);
}

/* ---- The socket itself. */

/*
 * Two agents that start at the same moment both find nobody at the socket, and each would put its
 * own in the place of the other's. The lock ends with its holder, however that ends.
 */
static int lock_agent(const char *run_dir, int *ret, struct gs_err *err)
{
	cleanup_free char *path = gs_asprintf("%s/agent.lock", run_dir);
	cleanup_close int fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0)
		return gs_err_errno(err, errno, "open %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ?
			       gs_err_set(err, EADDRINUSE, "another agent has locked %s", path) :
			       gs_err_errno(err, errno, "lock %s", path);
	*ret = gs_steal_fd(&fd);
	return 0;
}

/* Does somebody answer there? Then it is another agent's, and stays. */
static bool is_alive(const struct sockaddr_un *addr)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 &&
	       (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN);
}

static int open_socket(struct server *server, struct gs_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	cleanup_close int fd = -1;
	mode_t mask;
	int r;

	if (strlen(server->path) >= sizeof(addr.sun_path))
		return gs_err_set(err, ENAMETOOLONG, "socket %s", server->path);
	(void)memcpy(addr.sun_path, server->path, strlen(server->path) + 1);
	if (is_alive(&addr))
		return gs_err_set(err, EADDRINUSE, "another agent answers at %s", server->path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return gs_err_errno(err, errno, "socket");
	(void)unlink(server->path);
	mask = umask(0177);
	r = bind(fd, (const struct sockaddr *)&addr, sizeof(addr));
	(void)umask(mask);
	if (r < 0 || listen(fd, BACKLOG) < 0)
		return gs_err_errno(err, errno, "listen at %s", server->path);
	server->fd = gs_steal_fd(&fd);
	return 0;
}

int server_start(struct agent *agent, struct gs_err *err)
{
	struct server *server = gs_calloc(1, sizeof(*server));
	int fd = gs_dir_make(agent->config.run_dir, NULL, err);
	int r = fd < 0 ? fd : 0;

	if (fd >= 0)
		(void)close(fd);
	server->agent = agent;
	server->path = gs_asprintf("%s/" GS_AGENT_SOCKET, agent->config.run_dir);
	server->lock = -1;
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (r == 0)
		r = lock_agent(agent->config.run_dir, &server->lock, err);
	if (r == 0)
		r = open_socket(server, err);
	if (r < 0) {
		if (server->lock >= 0)
			(void)close(server->lock);
		if (server->spare >= 0)
			(void)close(server->spare);
		free(server->path);
		free(server);
		return r;
	}
	server->poll.data = server->changed.data = server;
	server->open = 2;
	(void)uv_timer_init(agent->loop, &server->changed);
	(void)uv_poll_init(agent->loop, &server->poll, server->fd);
	(void)uv_poll_start(&server->poll, UV_READABLE, on_connect);
	agent->server = server;
	return 0;
}

static void on_server_closed(uv_handle_t *handle)
{
	struct server *server = handle->data;

	if (--server->open == 0) {
		(void)close(server->fd);
		(void)close(server->lock);
		if (server->spare >= 0)
			(void)close(server->spare);
	}
	free_stopped(server);
}

void server_stop(struct agent *agent)
{
	struct server *server = agent->server;

	if (!server)
		return;
	agent->server = NULL;
	(void)unlink(server->path);
	for (struct client *client = server->clients; client; client = client->next)
		hang_up(client);
	uv_close((uv_handle_t *)&server->poll, on_server_closed);
	uv_close((uv_handle_t *)&server->changed, on_server_closed);
}
