/** Defines the API operations for the artifact bin. */
import { z } from 'zod'
import { actorOf } from '../../identity/audit.ts'
import type { Page } from '../../lib/page.ts'
import { reference } from '../../lib/schema-bounds.ts'
import { operationsOf, withRequestLog } from '../../operations/operation.ts'
import type { Dependencies } from '../dependencies.ts'
import { ArtifactDeleted, ArtifactReference, storedKinds } from '../schema.ts'
import {
  BIN_SECONDS,
  binArtifact,
  deleteBinnedArtifact,
  listBinnedArtifacts,
  restoreBinnedArtifact,
} from './bin.ts'
import type { BinnedUpload } from './store.ts'

const { query, mutation } = operationsOf<Dependencies>()('Artifacts', { callers: ['parent'] })

const ArtifactBinQuery = z.strictObject({
  limit: z.int().min(1).max(100).default(50).meta({ description: 'Maximum number of artifacts to return.' }),
  after: reference()
    .optional()
    .meta({ description: 'Id of an artifact in the bin; returns only artifacts after it in the list.' }),
})

const artifactId = z.string()
const purgeAt = z.int().meta({ description: 'Unix seconds after which the server deletes the artifact.' })

const ArtifactBinned = z
  .strictObject({ artifactId, binned: z.literal(true), purgeAt })
  .meta({ id: 'ArtifactBinned' })

const ArtifactRestored = z
  .strictObject({ artifactId, restored: z.literal(true) })
  .meta({ id: 'ArtifactRestored' })

const ArtifactBinItem = z
  .strictObject({
    artifactId,
    kind: z.enum(storedKinds),
    name: z.string().optional().meta({ description: "The `name` field of the upload's metadata." }),
    filename: z.string(),
    size: z.int().meta({ description: 'Number of bytes that still count toward the quota.' }),
    createdAt: z.int().meta({ description: 'Unix seconds.' }),
    binnedAt: z.int().meta({ description: 'Unix seconds at which the artifact was moved to the bin.' }),
    purgeAt,
  })
  .meta({ id: 'ArtifactBinItem' })

const ArtifactBinList = z
  .strictObject({ object: z.literal('list'), data: z.array(ArtifactBinItem), has_more: z.boolean() })
  .meta({ id: 'ArtifactBinList' })

function renderBin({ rows, hasMore }: Page<BinnedUpload>): z.output<typeof ArtifactBinList> {
  const data = rows.map((row) => ({
    artifactId: row.id,
    kind: row.kind,
    ...(row.name === null ? {} : { name: row.name }),
    filename: row.filename,
    size: row.kept_bytes,
    createdAt: row.created_at,
    binnedAt: row.binned_at,
    purgeAt: row.binned_at + BIN_SECONDS,
  }))
  return { object: 'list', data, has_more: hasMore }
}

const notInBin = { 404: 'The artifact is not in the bin.' }

export const artifactBinOperations = {
  bin: mutation({
    http: { method: 'POST', path: '/v1/artifacts/{artifact_id}/bin' },
    docs: {
      summary: 'Move an artifact to the bin',
      description:
        'Requests for the artifact then get the same responses as for a deleted one. The artifact can be restored for 30 days, after which the server deletes it. Until its deletion, its bytes count toward the quota, and its id cannot be used again.',
      failures: { 404: 'Artifact not found.', 409: 'The artifact is not `ready`.' },
    },
    input: ArtifactReference,
    output: ArtifactBinned,
    run: async ({ context, input: { artifact_id: id } }) => {
      const row = await binArtifact(withRequestLog(context), actorOf(context), context.caller.tenantId, id)
      return { artifactId: id, binned: true as const, purgeAt: row.binned_at + BIN_SECONDS }
    },
  }),

  listBin: query({
    http: { method: 'GET', path: '/v1/bin/artifacts' },
    docs: { summary: 'List the artifacts in the bin' },
    input: ArtifactBinQuery,
    output: ArtifactBinList,
    run: async ({ context: { deps, caller }, input }) =>
      renderBin(await listBinnedArtifacts(deps, caller.tenantId, input)),
  }),

  restoreFromBin: mutation({
    http: { method: 'POST', path: '/v1/bin/artifacts/{artifact_id}/restore' },
    docs: { summary: 'Restore an artifact from the bin', failures: notInBin },
    input: ArtifactReference,
    output: ArtifactRestored,
    run: async ({ context, input: { artifact_id: id } }) => {
      await restoreBinnedArtifact(withRequestLog(context), actorOf(context), context.caller.tenantId, id)
      return { artifactId: id, restored: true as const }
    },
  }),

  deleteFromBin: mutation({
    http: { method: 'DELETE', path: '/v1/bin/artifacts/{artifact_id}' },
    docs: { summary: 'Permanently delete an artifact from the bin', failures: notInBin },
    input: ArtifactReference,
    output: ArtifactDeleted,
    run: async ({ context, input: { artifact_id: id } }) => {
      await deleteBinnedArtifact(withRequestLog(context), actorOf(context), context.caller.tenantId, id)
      return { artifactId: id, deleted: true as const }
    },
  }),
}
