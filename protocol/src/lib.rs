//! HTTP/1.1 framing, server-sent events, OpenAI streams and one timeline per request, without I/O.
