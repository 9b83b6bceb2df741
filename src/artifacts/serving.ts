/** Opens what has become of an upload. */

import { basename, extname } from 'node:path'
import { unixSeconds } from '../lib/clock.ts'
import { Download } from '../rpc/answer.ts'
import { wholeOf } from '../storage/blobs.ts'
import { type ArtifactCaller, assertFor, assertUse } from './access.ts'
import { artifactNotFound } from './artifacts.ts'
import type { Dependencies } from './dependencies.ts'
import type { ArtifactDesk } from './desk.ts'
import { type ArtifactRow, findArtifact } from './store.ts'

type ServingDeps = Pick<Dependencies, 'db' | 'clock'> & { readonly artifacts: ArtifactDesk }

/** What is served of an artifact. */
interface Served {
  readonly blob: string | null
  readonly sizeBytes: number | null
  readonly mediaType: string | null
  readonly filename: string
  readonly isAttachment: boolean
}

/**
 * The bytes an artifact was made into, or came as. Those that were neither made here nor found good are never shown in the browser's
 * own window, and neither are those that are not what they are meant to be. Security: 2.7. Decision: 9 (Conversion).
 * @throws ServiceError `not_found` until it is ready; `insufficient_permissions`.
 */
export function openArtifact(deps: ServingDeps, caller: ArtifactCaller, id: string): Promise<Download> {
  return open(deps, caller, id, (row) => ({
    blob: row.served_blob,
    sizeBytes: row.served_bytes,
    mediaType: row.media_type,
    filename: nameOf(row),
    isAttachment: row.conversion_reason !== null || row.sniffed_type !== row.media_type,
  }))
}

/** What converted bytes are called at the end of their name. */
const endings: Readonly<Record<string, string>> = {
  'video/mp4': '.mp4',
  'image/jpeg': '.jpg',
  'image/webp': '.webp',
  'text/vtt': '.vtt',
}

/** What the client called it; converted bytes are called what they are by now. */
function nameOf({ id, filename, conversion_result: result, media_type: mediaType }: ArtifactRow): string {
  const given = filename ?? id
  const ending = endings[mediaType ?? '']
  return result === 'converted' && ending !== undefined ? basename(given, extname(given)) + ending : given
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
  choose: (row: ArtifactRow) => Served,
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
