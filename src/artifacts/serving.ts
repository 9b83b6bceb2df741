/** Opens what has become of an upload. */
import { type Deps, unixSeconds } from '../deps.ts'
import { Download } from '../rpc/answer.ts'
import { wholeOf } from '../storage/blobs.ts'
import { type ArtifactCaller, assertFor, assertUse } from './access.ts'
import { artifactNotFound } from './artifacts.ts'
import { findArtifact } from './store.ts'

type ServingDeps = Pick<Deps, 'db' | 'clock' | 'artifacts'>

/** What is served of an artifact. */
interface Served {
  readonly blob: string | null
  readonly sizeBytes: number | null
  readonly mediaType: string | null
  readonly filename: string
  readonly isAttachment: boolean
}

/**
 * The bytes an artifact was made into, or came as. Those that nobody has made here are never shown in the browser's own window,
 * and neither are those that are not what they are meant to be. Security: 2.7. Decision: 9 (Conversion).
 * @throws ServiceError `not_found` until it is ready; `insufficient_permissions`.
 */
export function openArtifact(deps: ServingDeps, caller: ArtifactCaller, id: string): Promise<Download> {
  return open(deps, caller, id, (row) => ({
    blob: row.served_blob,
    sizeBytes: row.served_bytes,
    mediaType: row.media_type,
    filename: row.filename ?? id,
    isAttachment: row.conversion_result !== 'converted' || row.sniffed_type !== row.media_type,
  }))
}

/** The still picture of an artifact. @throws ServiceError `not_found` while there is none; `insufficient_permissions`. */
export function openPoster(deps: ServingDeps, caller: ArtifactCaller, id: string): Promise<Download> {
  return open(deps, caller, id, (row) => ({
    blob: row.poster_blob,
    sizeBytes: row.poster_bytes,
    mediaType: 'image/jpeg',
    filename: 'poster.jpg',
    isAttachment: false,
  }))
}

async function open(
  deps: ServingDeps,
  caller: ArtifactCaller,
  id: string,
  choose: (row: NonNullable<Awaited<ReturnType<typeof findArtifact>>>) => Served,
): Promise<Download> {
  assertUse(caller, 'view')
  const find = () => findArtifact(deps.db, caller.tenantId, id, unixSeconds(deps.clock))
  const row = await find()
  assertFor(caller, id, row)
  if (row === undefined) throw artifactNotFound()
  const { blob, sizeBytes, mediaType, filename, isAttachment } = choose(row)
  if (blob === null || sizeBytes === null || mediaType === null) throw artifactNotFound()
  return new Download({
    sizeBytes,
    // The bytes under a blob's name never change.
    entityTag: `"${blob}"`,
    mediaType,
    filename,
    isAttachment,
    async open(range) {
      try {
        return await deps.artifacts.store.blobs.open(blob, range ?? wholeOf(sizeBytes))
      } catch (error) {
        // Removed since it was looked up, or else a loss of ours.
        if ((await find()) === undefined) throw artifactNotFound()
        throw error
      }
    },
  })
}
