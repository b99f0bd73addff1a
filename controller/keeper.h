/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the webhook's certificate: in a Secret, that all replicas read and the leader renews; and
 * its authorities in the MutatingWebhookConfiguration, where the API server reads them.
 */
#ifndef GPUSHARE_CONTROLLER_KEEPER_H
#define GPUSHARE_CONTROLLER_KEEPER_H

#include <gnutls/abstract.h>
#include <time.h>

#include "controller/controller.h"

/*
 * Makes a certificate that nobody trusts, to be shown until the Secret is read, and begins to read
 * it. -EIO: GnuTLS can't.
 */
int keeper_start(struct controller *controller, struct gs_err *err);
void keeper_stop(struct controller *controller);

/* Looks again now: we have begun to lead. */
void keeper_hurry(struct controller *controller);

/* Is what we show the Secret's? And when does it end; 0: not known. */
bool keeper_ready(const struct controller *controller);
time_t keeper_end(const struct controller *controller);

/* For httpd_config: gives the certificate; there is one keeper in a process. */
int keeper_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
		       gnutls_pcert_st **chain, unsigned int *ret_n, gnutls_ocsp_data_st **ocsp,
		       unsigned int *ret_n_ocsp, gnutls_privkey_t *key, unsigned int *flags);

#endif
