/* Messages go to the callback and nowhere else: no error log file, no standard output. */
static void
mg_cry_internal_impl(const struct mg_connection *conn, const char *func, unsigned line, const char *fmt, va_list ap)
{
	char text[512];

	(void)func;
	(void)line;
	vsnprintf(text, sizeof(text), fmt, ap);
	if ((conn != NULL) && (conn->phys_ctx->callbacks.log_message != NULL)) {
		conn->phys_ctx->callbacks.log_message(conn, text);
	}
}
