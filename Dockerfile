# syntax=docker/dockerfile:1
# postroom on the CPU: built in one stage, run in another that holds the binary and the models and nothing else.
#
#   docker build -t postroom .
#   docker run --read-only --cap-drop ALL -p 8080:8080 postroom
#
# scripts/container-check reads the second stage from this file and runs it without a container engine.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /build
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc g++ make pkg-config \
    && rm -rf /var/lib/apt/lists/*
# The dependencies alone first: they change seldom and take most of the time.
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src benches \
    && echo 'fn main() {}' > src/main.rs \
    && touch src/lib.rs \
    && cargo build --locked --release --bin postroom \
    && rm -rf src
COPY src src
COPY config config
RUN touch src/main.rs src/lib.rs && cargo build --locked --release --bin postroom

FROM debian:bookworm-slim
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="postroom" \
      org.opencontainers.image.description="Routes support email to the queue that must act" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin postroom
COPY --from=build /build/target/release/postroom /usr/bin/postroom
COPY config/default.toml /etc/postroom/default.toml
COPY models /usr/share/postroom/models
COPY LICENSE /usr/share/doc/postroom/LICENSE
USER 10001:10001
# Anywhere but in the source tree: models are found in /usr/share/postroom.
WORKDIR /
ENV POSTROOM_SERVER_HOST=0.0.0.0 \
    POSTROOM_SERVER_PORT=8080
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 CMD ["/usr/bin/postroom", "healthcheck"]
ENTRYPOINT ["/usr/bin/postroom"]
CMD ["serve"]
