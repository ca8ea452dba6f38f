# The image of tacho: the program, the shared libraries it needs, and nothing else: no shell, no package manager.
#
#   docker build --tag tacho .           also with podman, buildah, BuildKit
#
# Run it as uid 0 with two capabilities; README, "In a container", says what each part is for:
#
#   docker run --read-only --cap-drop ALL --cap-add BPF --cap-add PERFMON --security-opt no-new-privileges \
#     --pid host --volume /sys/fs/cgroup:/sys/fs/cgroup:ro \
#     --volume /sys/kernel/tracing:/sys/kernel/tracing:ro --publish 9435:9435 tacho

# Any Debian 12 that has apt.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /source
# The packages first: they change less often than the sources.
COPY deploy/install-deps deploy/
RUN deploy/install-deps build
COPY . .
RUN cmake --preset release -DTACHO_BUILD_TESTS=OFF \
 && cmake --build --preset release --target tacho \
 && deploy/image/collect build/release/tacho /image

FROM scratch
COPY --from=build /image /
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="tacho" \
      org.opencontainers.image.description="A tachometer for servers: requests per container, counted in the kernel" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# uid 0 since tracefs is root's; what it may do is in the capabilities that are granted.
USER 0:0
EXPOSE 9435
# Kubernetes asks by HTTP and ignores this; an image in OCI's format has no place for it (podman: --format docker).
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/bin/tacho", "health"]
ENTRYPOINT ["/usr/bin/tacho"]
