# Builds an image with Node.js, ffmpeg and Parley. The server does not run as root, and writes only to /data and /tmp.
#
#   docker build -t parley . && docker run --read-only --tmpfs /tmp --init -p 3000:3000 -v parley:/data parley
#
# All three stages use the same version of the base image. To pin its content too, append the digest that
# `docker buildx imagetools inspect node:24.19.0-bookworm-slim` prints, as in node:24.19.0-bookworm-slim@sha256:…
# test/programs/dockerfile.test.ts runs these commands without Docker, in empty folders.

# Installs the server's packages, without Node.js, which the base image provides, and without TypeScript.
FROM node:24.19.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --workspaces=false --ignore-scripts \
  && rm -rf node_modules/.bin/node node_modules/node-linux-* node_modules/node-bin-* node_modules/node-win-* \
    node_modules/.bin/tsc node_modules/typescript node_modules/@typescript

# Builds the console, the widget and the documentation.
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
COPY docs docs
RUN node scripts/build-widget.ts && node scripts/build-console.ts && node scripts/build-docs.ts

FROM node:24.19.0-bookworm-slim
LABEL org.opencontainers.image.title="Parley" \
  org.opencontainers.image.description="Self-hosted service for conversational agents and resumable uploads." \
  org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
  && apt-get install -y --no-install-recommends ffmpeg \
  && rm -rf /var/lib/apt/lists/*
# 1000 is the base image's user `node`. Kubernetes can check `runAsNonRoot` only if the user is a number.
RUN install -d -o 1000 -g 1000 -m 0700 /data
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 PARLEY_DATA_DIR=/data
COPY --from=packages /app/node_modules node_modules
COPY --from=pages /app/dist dist
COPY package.json openapi.json LICENSE NOTICE ./
COPY prices prices
COPY docs docs
COPY examples examples
COPY src src
COPY packages/in-process/src packages/in-process/src
COPY deploy/healthcheck.mjs deploy/
USER 1000:1000
VOLUME /data
EXPOSE 3000
# On SIGTERM, the server gives open requests up to 25 s to finish. The exec form of CMD delivers the signal to Node.js without a shell.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "deploy/healthcheck.mjs"]
CMD ["node", "src/main.ts", "serve"]
