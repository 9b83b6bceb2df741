/** The operations on artifacts. Uploading uses the tus endpoint; bytes and pages exist only in the REST API. */
import { z } from 'zod'
import { actorOf } from '../identity/audit.ts'
import { operationsOf, withRequestLog } from '../operations/operation.ts'
import { deleteArtifact, openArtifact, openPoster, reserveArtifact } from './artifacts.ts'
import type { Dependencies } from './dependencies.ts'
import {
  ArtifactList,
  ArtifactListQuery,
  getListedArtifact,
  ListedArtifact,
  listArtifacts,
  renderListed,
} from './listing.ts'
import { MAX_METADATA_BYTES, MAX_NAME_LENGTH } from './metadata.ts'
import {
  ArtifactDeleted,
  ArtifactReference,
  ArtifactReservation,
  ArtifactReserved,
  ArtifactStatus,
  ArtifactStatusQuery,
  artifactKinds,
  Capabilities,
  MAX_WAIT_SECONDS,
} from './schema.ts'
import { answerStatus, watchWithinLimit } from './status.ts'
import { renderStatusPageFailure } from './status-page/page.ts'
import { openStatusPage } from './status-page.ts'
import { uploadExtensions } from './tus.ts'

const byId = { path: ArtifactReference } as const
const bytesFailures = {
  404: 'There is nothing to be served (yet).',
  416: 'The range lies behind the last byte.',
}

const { query, mutation } = operationsOf<Dependencies>()('Artifacts', {
  callers: ['parent', 'token'],
  isUncounted: true,
})

export const artifactsOperations = {
  reserve: mutation({
    http: { method: 'POST', path: '/v1/artifacts' },
    auth: { callers: ['parent'] },
    response: { status: 201 },
    docs: { summary: 'Reserve an id, with tokens to upload and to open it' },
    input: ArtifactReservation,
    output: ArtifactReserved,
    run: ({ context: { deps, caller }, input }) => reserveArtifact(deps, caller.tenantId, input),
  }),

  list: query({
    http: { method: 'GET', path: '/v1/artifacts' },
    auth: { callers: ['parent'] },
    docs: { summary: "List the calling key's artifacts, newest first" },
    input: ArtifactListQuery,
    output: ArtifactList,
    run: ({ context: { deps, caller }, input }) => listArtifacts(deps, caller.tenantId, input),
  }),

  get: query({
    http: { method: 'GET', path: '/v1/artifacts/{artifact_id}' },
    auth: { callers: ['parent'] },
    docs: {
      summary: 'Read an artifact as it is listed',
      failures: { 404: 'There is no such artifact, or its id is only reserved.' },
    },
    input: ArtifactReference,
    output: ListedArtifact,
    run: async ({ context: { deps, caller }, input }) =>
      renderListed(await getListedArtifact(deps, caller.tenantId, input.artifact_id)),
  }),

  status: query({
    http: { method: 'GET', path: '/artifacts/{artifact_id}/status' },
    request: { ...byId, headers: { prefer: 'prefer' } },
    response: { events: ArtifactStatus },
    docs: {
      summary: 'Ask how an artifact is doing',
      description: 'With `Accept: text/event-stream` every change is an event.',
    },
    input: ArtifactStatusQuery,
    output: ArtifactStatus,
    run: answerStatus,
  }),

  watch: query({
    input: ArtifactReference,
    output: z.custom<AsyncIterable<ArtifactStatus>>(),
    run: (call) => watchWithinLimit(call, call.input.artifact_id),
  }),

  page: query({
    http: { method: 'GET', path: '/artifacts/{artifact_id}/watch' },
    rpc: false,
    request: byId,
    response: { page: renderStatusPageFailure },
    docs: {
      summary: 'Watch an artifact become ready, in a browser',
      description: 'A page that follows the status, also without scripts, and shows what comes of it.',
    },
    input: ArtifactReference,
    output: z.never(),
    run: ({ context: { deps, caller, metadata }, input }) =>
      openStatusPage(deps, caller, input.artifact_id, metadata.token),
  }),

  content: query({
    http: { method: 'GET', path: '/artifacts/{artifact_id}' },
    rpc: false,
    request: byId,
    response: { download: true },
    docs: { summary: 'Open an artifact', failures: bytesFailures },
    input: ArtifactReference,
    output: z.never(),
    run: ({ context: { deps, caller }, input }) => openArtifact(deps, caller, input.artifact_id),
  }),

  poster: query({
    http: { method: 'GET', path: '/artifacts/{artifact_id}/poster' },
    rpc: false,
    request: byId,
    response: { download: true },
    docs: { summary: 'Open the still picture of a video', failures: bytesFailures },
    input: ArtifactReference,
    output: z.never(),
    run: ({ context: { deps, caller }, input }) => openPoster(deps, caller, input.artifact_id),
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/artifacts/{artifact_id}' },
    request: byId,
    docs: {
      summary: 'Delete an artifact, whether it is uploaded or not',
      failures: { 404: 'There is no such artifact.' },
    },
    input: ArtifactReference,
    output: ArtifactDeleted,
    run: async ({ context, input }) => {
      await deleteArtifact(withRequestLog(context), actorOf(context), context.caller, input.artifact_id)
      return { artifactId: input.artifact_id, deleted: true as const }
    },
  }),

  capabilities: query({
    http: { method: 'GET', path: '/capabilities' },
    auth: { callers: [], isUncounted: true },
    docs: { summary: 'Read what uploads may be like' },
    input: z.object({}),
    output: Capabilities,
    run: ({ context: { deps } }) => ({
      protocolVersion: 2 as const,
      protocolRevision: '2.3' as const,
      kinds: [...artifactKinds],
      extensions: [...uploadExtensions],
      limits: {
        maxUploadBytes: deps.config.limits.maxUploadBytes,
        maxMetadataBytes: MAX_METADATA_BYTES,
        maxNameLength: MAX_NAME_LENGTH,
        maxWaitSeconds: MAX_WAIT_SECONDS,
      },
      checksum: ['sha256'],
    }),
  }),
}
