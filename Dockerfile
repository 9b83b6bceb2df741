# Parley in a container: Node, ffmpeg and nothing that compiles; not as root, and with `--read-only` only /data and /tmp are written.
#
#   docker build -t parley . && docker run --read-only --tmpfs /tmp --init -p 3000:3000 -v parley:/data parley
#
# The base image is pinned by version, the same three times. To pin its content too, put the digest behind it that
# `docker buildx imagetools inspect node:24.19.0-bookworm-slim` prints, as in node:24.19.0-bookworm-slim@sha256:…
# test/programs/dockerfile.test.ts runs these commands without Docker, in clean folders.

# What the server loads. The packages that bring Node itself stay out, for the base image has it, and TypeScript, whose types alone are asked for.
FROM node:24.19.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --workspaces=false --ignore-scripts \
  && rm -rf node_modules/.bin/node node_modules/node-linux-* node_modules/node-bin-* node_modules/node-win-* \
    node_modules/.bin/tsc node_modules/typescript node_modules/@typescript

# What browsers load.
FROM node:24.19.0-bookworm-slim AS pages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY client/package.json client/
RUN npm ci --omit=dev --workspace=client --include-workspace-root --ignore-scripts
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
COPY widget widget
COPY client client
RUN node scripts/build-widget.ts && node scripts/build-console.ts

FROM node:24.19.0-bookworm-slim
LABEL org.opencontainers.image.title="Parley" \
  org.opencontainers.image.description="Self-hosted service for conversational agents and resumable uploads." \
  org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
  && apt-get install -y --no-install-recommends ffmpeg \
  && rm -rf /var/lib/apt/lists/*
# The user `node` of the base image; by its number, so that Kubernetes sees that it is not root.
RUN install -d -o 1000 -g 1000 -m 0700 /data
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 PARLEY_DATA_DIR=/data
COPY --from=packages /app/node_modules node_modules
COPY --from=pages /app/dist dist
COPY package.json openapi.json LICENSE ./
COPY docs docs
COPY src src
COPY packages/in-process/src packages/in-process/src
COPY deploy/healthcheck.mjs deploy/
USER 1000:1000
VOLUME /data
EXPOSE 3000
# The first one lets what is under way end, for 25 seconds at most. The words of CMD are no shell's, so that Node gets it itself.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "deploy/healthcheck.mjs"]
CMD ["node", "src/main.ts", "serve"]
