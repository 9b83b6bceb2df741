/** Defines the API operations on artifacts, except uploads, which use the tus endpoint. */
import { z } from 'zod'
import { actorOf } from '../identity/audit.ts'
import { unixSeconds } from '../lib/clock.ts'
import { operationsOf, withRequestLog } from '../operations/operation.ts'
import { deleteArtifact, openArtifact, openPoster, reserveArtifact } from './artifacts.ts'
import { artifactBinOperations } from './bin/operations.ts'
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
/** The media types of converted files, and a wildcard for originals. */
const artifactTypes = ['video/mp4', 'image/jpeg', 'image/webp', 'text/vtt', '*/*']
const artifactTypesText =
  'Returns the converted file: MP4 for videos, JPEG or WebP for images, WebVTT for captions. If there is no converted file, returns the original file.'

const bytesFailures = {
  404: 'The artifact does not exist, is not ready yet, or does not have this file.',
  416: 'The range starts after the last byte.',
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
    docs: { summary: 'Reserve an artifact id, and create tokens to upload and view the artifact' },
    input: ArtifactReservation,
    output: ArtifactReserved,
    run: ({ context: { deps, caller }, input }) => reserveArtifact(deps, caller.tenantId, input),
  }),

  list: query({
    http: { method: 'GET', path: '/v1/artifacts' },
    auth: { callers: ['parent'] },
    docs: { summary: 'List your artifacts' },
    input: ArtifactListQuery,
    output: ArtifactList,
    run: ({ context: { deps, caller }, input }) => listArtifacts(deps, caller.tenantId, input),
  }),

  get: query({
    http: { method: 'GET', path: '/v1/artifacts/{artifact_id}' },
    auth: { callers: ['parent'] },
    docs: {
      summary: 'Get an artifact',
      failures: { 404: 'The artifact does not exist, or its id is reserved and its upload has not started.' },
    },
    input: ArtifactReference,
    output: ListedArtifact,
    run: async ({ context: { deps, caller }, input }) =>
      renderListed(
        await getListedArtifact(deps, caller.tenantId, input.artifact_id),
        unixSeconds(deps.clock),
      ),
  }),

  status: query({
    http: { method: 'GET', path: '/artifacts/{artifact_id}/status' },
    request: { ...byId, headers: { prefer: 'prefer' } },
    response: { events: ArtifactStatus },
    docs: {
      summary: "Get an artifact's status",
      description: 'With `Accept: text/event-stream`, the server sends each change as an event.',
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
      summary: "Open an artifact's status page",
      description:
        'Returns an HTML page that shows the current status and then a preview. The page also works without JavaScript.',
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
    response: { download: artifactTypes },
    docs: { summary: 'Download an artifact', description: artifactTypesText, failures: bytesFailures },
    input: ArtifactReference,
    output: z.never(),
    run: ({ context: { deps, caller }, input }) => openArtifact(deps, caller, input.artifact_id),
  }),

  poster: query({
    http: { method: 'GET', path: '/artifacts/{artifact_id}/poster' },
    rpc: false,
    request: byId,
    response: { download: ['image/jpeg'] },
    docs: { summary: "Download a video's poster image", failures: bytesFailures },
    input: ArtifactReference,
    output: z.never(),
    run: ({ context: { deps, caller }, input }) => openPoster(deps, caller, input.artifact_id),
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/artifacts/{artifact_id}' },
    request: byId,
    docs: {
      summary: 'Delete an artifact or a reserved id',
      failures: { 404: 'The artifact does not exist.' },
    },
    input: ArtifactReference,
    output: ArtifactDeleted,
    run: async ({ context, input }) => {
      await deleteArtifact(withRequestLog(context), actorOf(context), context.caller, input.artifact_id)
      return { artifactId: input.artifact_id, deleted: true as const }
    },
  }),

  ...artifactBinOperations,

  capabilities: query({
    http: { method: 'GET', path: '/capabilities' },
    auth: { callers: [], isUncounted: true },
    docs: { summary: 'Get the upload limits and features' },
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
