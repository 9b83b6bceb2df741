/** Builds an artifact's status page, with a preview once the artifact is ready. */
import type { Readable } from 'node:stream'
import type { DownloadContent } from '../http/download.ts'
import { IMMUTABLE, type PageFile } from '../http/response.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Page } from '../operations/operation.ts'
import type { ArtifactCaller } from './access.ts'
import { openArtifact, openPoster } from './artifacts.ts'
import type { Dependencies } from './dependencies.ts'
import { readStatus } from './status.ts'
import { type Preview, renderStatusPage, statusPageFiles } from './status-page/page.ts'

const MAX_TEXT_BYTES = 65_536

const previewTypes: Readonly<Record<string, Preview['as']>> = {
  'video/mp4': 'video',
  'video/webm': 'video',
  'image/png': 'picture',
  'image/jpeg': 'picture',
  'image/webp': 'picture',
  'text/vtt': 'captions',
}

type WatchDeps = Pick<Dependencies, 'db' | 'clock' | 'artifacts'>

/**
 * Returns the status page. Its links include `token`, so that the browser can load the artifact.
 * @throws ServiceError `insufficient_permissions`
 */
export async function openStatusPage(
  deps: WatchDeps,
  caller: ArtifactCaller,
  id: string,
  token: string | undefined,
): Promise<Page> {
  const query = token === undefined ? '' : `?token=${encodeURIComponent(token)}`
  const status = await readStatus(deps, caller, id)
  if (status.state !== 'ready') return renderStatusPage({ status, query })
  const preview = await findPreview(deps, caller, id)
  // The artifact was deleted after its status was read.
  if (preview === undefined) return renderStatusPage({ status: { artifactId: id, state: 'unknown' }, query })
  return renderStatusPage({ status, query, preview })
}

async function findPreview(
  deps: WatchDeps,
  caller: ArtifactCaller,
  id: string,
): Promise<Preview | undefined> {
  const opened = await unlessNotFound(openArtifact(deps, caller, id))
  if (opened === undefined) return undefined
  const { content } = opened
  const { sizeBytes, mediaType } = content
  const as = content.isAttachment ? 'file' : (previewTypes[mediaType] ?? 'file')
  const hasPoster = as === 'video' && (await unlessNotFound(openPoster(deps, caller, id))) !== undefined
  const text = as === 'captions' ? await unlessNotFound(readBeginning(content)) : undefined
  return { as, sizeBytes, hasPoster, ...(text === undefined ? {} : { text }) }
}

async function unlessNotFound<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'not_found') return undefined
    throw error
  }
}

async function readBeginning({ sizeBytes, open }: DownloadContent): Promise<string> {
  if (sizeBytes === 0) return ''
  const isCut = sizeBytes > MAX_TEXT_BYTES
  const bytes: Readable = await open({ start: 0, end: Math.min(sizeBytes, MAX_TEXT_BYTES) - 1 })
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of bytes) text += decoder.decode(chunk as Buffer, { stream: true })
  // Does not flush the decoder after truncated text, because it may hold an incomplete character.
  return isCut ? `${text}…` : text + decoder.decode()
}

export const statusPageAssets: ReadonlyMap<string, PageFile> = new Map(
  Object.values(statusPageFiles).map(({ name, mediaType, text }) => [
    `/artifacts/${name}`,
    {
      body: { text },
      headers: {
        'Content-Type': `${mediaType}; charset=utf-8`,
        'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
        'X-Content-Type-Options': 'nosniff',
        'Referrer-Policy': 'no-referrer',
        'Cache-Control': IMMUTABLE,
        'Protocol-Version': '2',
      },
    },
  ]),
)
