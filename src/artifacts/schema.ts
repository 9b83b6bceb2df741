/** Defines the API schemas for artifacts, and renders artifacts into them. */
import { z } from 'zod'
import { label } from '../lib/schema-bounds.ts'
import type { ArtifactViewRow } from './store.ts'

/** The kinds that clients with a parent key upload. */
export const artifactKinds = ['video', 'project', 'captions', 'thumbnail'] as const
/** `attachment` is a visitor's upload. */
export const storedKinds = [...artifactKinds, 'attachment'] as const

export type ArtifactKind = (typeof storedKinds)[number]

export function parseArtifactId(text: string): string | undefined {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? text.toLowerCase() : undefined
}

const uuid = z.guid('must be a UUID').toLowerCase()
const unixTime = z.int().meta({ description: 'Unix seconds.' })
const UploadKind = z.enum(artifactKinds, { error: `must be one of ${artifactKinds.join(', ')}` })

export const ArtifactReference = z.object({
  artifact_id: uuid.meta({ description: 'Artifact id, a UUID.' }),
})

export const ArtifactStatusQuery = ArtifactReference.extend({
  prefer: label().optional().meta({
    description: 'With `wait=N`, the server waits up to N seconds (at most 30) for the status to change.',
  }),
})

export type ArtifactStatusQuery = z.output<typeof ArtifactStatusQuery>

export const ArtifactStatus = z
  .strictObject({
    artifactId: z.string(),
    state: z.enum(['unknown', 'uploading', 'processing', 'ready']).meta({
      description: '`unknown` if the artifact does not exist, is only reserved, or was deleted.',
    }),
    kind: z.enum(storedKinds).optional(),
    relatedTo: z.string().optional(),
    name: z.string().optional(),
    bytesReceived: z.int().optional().meta({
      description:
        'Number of received bytes, up to a second out of date. The last bytes may not be durable yet; resume from `Upload-Offset`.',
    }),
    size: z.int().optional().meta({ description: 'Declared size in bytes, once known.' }),
    sha256: z.string().optional().meta({
      description: 'SHA-256 of the uploaded bytes in hexadecimal, once the server knows it.',
    }),
    acknowledged: z.boolean().optional(),
    outcome: z.json().optional(),
    progress: z
      .number()
      .optional()
      .meta({ description: 'Conversion progress from 0 to 1, while `processing`.' }),
    conversion: z
      .strictObject({ result: z.enum(['converted', 'original']), reason: z.string().optional() })
      .optional()
      .meta({ description: 'Describes the file that the server serves, once `ready`.' }),
    reason: z.enum(['expired', 'checksum_mismatch', 'dangerous', 'deleted']).optional().meta({
      description:
        'Why the artifact became `unknown`: the upload expired, its checksum did not match, its content is dangerous, or it was deleted. Kept for 30 days.',
    }),
  })
  .meta({ id: 'ArtifactStatus' })
export type ArtifactStatus = z.output<typeof ArtifactStatus>

export const MAX_TOKEN_SECONDS = 30 * 86_400

export const ArtifactReservation = z
  .strictObject({
    kind: UploadKind.optional().meta({
      description: 'Kind of the upload. If omitted, the token allows any kind.',
    }),
    related_to: uuid.optional().meta({ description: 'Id of the artifact that this one belongs to.' }),
    expires_in: z
      .int()
      .min(1)
      .max(MAX_TOKEN_SECONDS)
      .default(86_400)
      .meta({ description: 'Seconds for which the reservation and the tokens are valid.' }),
  })
  .meta({ id: 'ArtifactReservation' })
export type ArtifactReservation = z.output<typeof ArtifactReservation>

export const ArtifactReserved = z
  .strictObject({
    artifact_id: z.string(),
    upload_token: z.string(),
    view_token: z.string(),
    expires_at: unixTime,
    upload_url: z
      .string()
      .meta({ description: 'URL of the tus endpoint; relative if PARLEY_PUBLIC_URL is not set.' }),
  })
  .meta({ id: 'ArtifactReserved' })

export const ArtifactDeleted = z
  .strictObject({ artifactId: z.string(), deleted: z.literal(true) })
  .meta({ id: 'ArtifactDeleted' })

export const Capabilities = z
  .strictObject({
    protocolVersion: z.literal(2),
    protocolRevision: z.literal('2.3'),
    kinds: z.array(UploadKind),
    extensions: z.array(z.string()).meta({ description: 'Supported extensions of the tus 1.0.0 protocol.' }),
    limits: z.strictObject({
      maxUploadBytes: z.int(),
      maxMetadataBytes: z.int(),
      maxNameLength: z.int().meta({ description: 'Maximum length of a name, in Unicode code points.' }),
      maxWaitSeconds: z.int().meta({ description: 'Maximum number of seconds for `Prefer: wait`.' }),
    }),
    checksum: z
      .array(z.string())
      .meta({ description: 'Supported algorithms in the metadata key `checksum`.' }),
  })
  .meta({ id: 'Capabilities' })

/** Counts unrecorded bytes only while a writer holds the lease, because they may be lost afterwards. */
function countReceived({ lease_until, received_bytes, arrived_bytes }: ArtifactViewRow, now: number): number {
  return (lease_until ?? 0) > now ? Math.max(received_bytes, arrived_bytes) : received_bytes
}

export function renderUnknown(id: string, reason: ArtifactStatus['reason']): ArtifactStatus {
  return { artifactId: id, state: 'unknown', ...(reason === undefined ? {} : { reason }) }
}

/** `now` is in Unix seconds. */
export function renderStatus(id: string, row: ArtifactViewRow, now: number): ArtifactStatus {
  const { conversion_result: result, conversion_reason: reason } = row
  return {
    artifactId: id,
    state: row.state,
    ...(row.kind === null ? {} : { kind: row.kind }),
    ...(row.related_to === null ? {} : { relatedTo: row.related_to }),
    ...(row.name === null ? {} : { name: row.name }),
    bytesReceived: countReceived(row, now),
    ...(row.size_bytes === null ? {} : { size: row.size_bytes }),
    ...(row.sha256 === null ? {} : { sha256: row.sha256 }),
    acknowledged: row.acknowledged === 1,
    ...(row.outcome === null ? {} : { outcome: JSON.parse(row.outcome) }),
    ...(row.state === 'processing' ? { progress: row.progress_permille / 1000 } : {}),
    ...(result === null ? {} : { conversion: { result, ...(reason === null ? {} : { reason }) } }),
  }
}

export const MAX_WAIT_SECONDS = 30
