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
  renderArtifactList,
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
import { renderStatusPageFailure } from './status-page/layout.ts'
import { openStatusPage } from './status-page.ts'
import { uploadExtensions } from './tus.ts'

const tag = 'Artifacts'
const opener = {
  errors: 'artifact',
  callers: ['parent', 'token'],
  isUncounted: true,
  pathFirst: ArtifactReference,
} as const
const bytes = {
  ...opener,
  download: true,
  failures: { 404: 'There is nothing to be served (yet).', 416: 'The range lies behind the last byte.' },
} as const

const define = operationsOf<Dependencies>()

export const artifactsOperations = {
  reserve: define({
    kind: 'mutation',
    http: {
      method: 'POST',
      path: '/v1/artifacts',
      tag,
      summary: 'Reserve an id, with tokens to upload and to open it',
    },
    wire: { errors: 'openai', callers: ['parent'], status: 201 },
    input: ArtifactReservation,
    output: ArtifactReserved,
    run: ({ context: { deps, caller }, input }) => reserveArtifact(deps, caller.tenantId, input),
  }),

  list: define({
    kind: 'query',
    http: {
      method: 'GET',
      path: '/v1/artifacts',
      tag,
      summary: "List the calling key's artifacts, newest first",
    },
    wire: { errors: 'openai', callers: ['parent'], integers: ['limit'] },
    input: ArtifactListQuery,
    output: ArtifactList,
    run: async ({ context: { deps, caller }, input }) =>
      renderArtifactList(await listArtifacts(deps, caller.tenantId, input)),
  }),

  get: define({
    kind: 'query',
    http: {
      method: 'GET',
      path: '/v1/artifacts/{artifact_id}',
      tag,
      summary: 'Read an artifact as it is listed',
    },
    wire: {
      errors: 'openai',
      callers: ['parent'],
      failures: { 404: 'There is no such artifact, or its id is only reserved.' },
    },
    input: ArtifactReference,
    output: ListedArtifact,
    run: async ({ context: { deps, caller }, input }) =>
      renderListed(await getListedArtifact(deps, caller.tenantId, input.artifact_id)),
  }),

  status: define({
    kind: 'query',
    http: {
      method: 'GET',
      path: '/artifacts/{artifact_id}/status',
      tag,
      summary: 'Ask how an artifact is doing',
      description: 'With `Accept: text/event-stream` every change is an event.',
    },
    wire: { ...opener, headers: { prefer: 'prefer' }, sse: ArtifactStatus },
    input: ArtifactStatusQuery,
    output: ArtifactStatus,
    run: answerStatus,
  }),

  watch: define({
    kind: 'query',
    wire: opener,
    input: ArtifactReference,
    output: z.custom<AsyncIterable<ArtifactStatus>>(),
    run: (call) => watchWithinLimit(call, call.input.artifact_id),
  }),

  page: define({
    kind: 'query',
    http: {
      method: 'GET',
      path: '/artifacts/{artifact_id}/watch',
      tag,
      summary: 'Watch an artifact become ready, in a browser',
      description: 'A page that follows the status, also without scripts, and shows what comes of it.',
    },
    rpc: false,
    wire: { ...opener, page: renderStatusPageFailure },
    input: ArtifactReference,
    output: z.never(),
    run: ({ context: { deps, caller, arrival }, input }) =>
      openStatusPage(deps, caller, input.artifact_id, arrival.token),
  }),

  content: define({
    kind: 'query',
    http: { method: 'GET', path: '/artifacts/{artifact_id}', tag, summary: 'Open an artifact' },
    rpc: false,
    wire: bytes,
    input: ArtifactReference,
    output: z.never(),
    run: ({ context: { deps, caller }, input }) => openArtifact(deps, caller, input.artifact_id),
  }),

  poster: define({
    kind: 'query',
    http: {
      method: 'GET',
      path: '/artifacts/{artifact_id}/poster',
      tag,
      summary: 'Open the still picture of a video',
    },
    rpc: false,
    wire: bytes,
    input: ArtifactReference,
    output: z.never(),
    run: ({ context: { deps, caller }, input }) => openPoster(deps, caller, input.artifact_id),
  }),

  delete: define({
    kind: 'mutation',
    http: {
      method: 'DELETE',
      path: '/artifacts/{artifact_id}',
      tag,
      summary: 'Delete an artifact, whether it is uploaded or not',
    },
    wire: { ...opener, failures: { 404: 'There is no such artifact.' } },
    input: ArtifactReference,
    output: ArtifactDeleted,
    run: async ({ context, input }) => {
      await deleteArtifact(withRequestLog(context), actorOf(context), context.caller, input.artifact_id)
      return { artifactId: input.artifact_id, deleted: true as const }
    },
  }),

  capabilities: define({
    kind: 'query',
    http: { method: 'GET', path: '/capabilities', tag, summary: 'Read what uploads may be like' },
    wire: { errors: 'artifact', callers: [], isUncounted: true },
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
