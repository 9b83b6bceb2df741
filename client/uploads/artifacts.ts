/** Queries the active key's artifacts and follows their status. */

import { useDocumentVisibility } from '@mantine/hooks'
import { queryOptions, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import { toFailure } from '../failure.ts'
import type { UploadsSearch } from '../search.ts'
import { t } from '../strings/language.ts'

type ArtifactPage = Outputs['artifacts']['list']
export type Artifact = ArtifactPage['data'][number]
type ArtifactStatus = Outputs['artifacts']['status']

const PAGE_SIZE = 25

export const artifactsQuery = ({ artifact: _, ...search }: UploadsSearch) =>
  queryOptions({
    queryKey: ['artifacts', 'list', search],
    queryFn: () => api.artifacts.list.query({ limit: PAGE_SIZE, ...search }),
  })

/** Polling interval for artifacts without a status stream, in milliseconds. */
export const REFRESH_MS = 5_000

/** Fetches one artifact; null if it does not exist. */
export const artifactQuery = (id: string) =>
  queryOptions({
    queryKey: ['artifacts', 'one', id],
    queryFn: async (): Promise<Artifact | null> => {
      try {
        return await api.artifacts.get.query({ artifact_id: id })
      } catch (thrown) {
        // 400 means that the address does not contain a valid id.
        if ([400, 404].includes(toFailure(thrown).status)) return null
        throw thrown
      }
    },
    refetchInterval: ({ state }) => (state.data && isActive(state.data) ? REFRESH_MS : false),
  })

/** Returns the path of the artifact's content. */
export function addressOf(id: string): string {
  return `/artifacts/${id}`
}

export function isActive({ state }: Pick<Artifact, 'state'>): boolean {
  return state === 'uploading' || state === 'processing'
}

/** Returns the completed share of uploading or processing, 0 to 1; undefined if inactive or unknown. */
export function shareOf({ state, progress, bytesReceived = 0, size }: ArtifactStatus): number | undefined {
  if (state === 'processing') return progress
  if (state !== 'uploading' || size === undefined) return undefined
  return size === 0 ? 1 : bytesReceived / size
}

/** The kinds that users upload. */
export const uploadKindNames = {
  video: t('uploads.video'),
  project: t('uploads.project'),
  captions: t('uploads.captions'),
  thumbnail: t('uploads.thumbnail'),
} as const

export const kindNames = { ...uploadKindNames, attachment: t('uploads.attachment') } as const

export type Kind = keyof typeof uploadKindNames

/** Guesses the kind from the media type and the file name; returns `project` for an unknown type. */
export function guessKind({ name, type }: Pick<File, 'name' | 'type'>): Kind {
  if (type.startsWith('video/')) return 'video'
  if (type.startsWith('image/')) return 'thumbnail'
  if (/\.(vtt|srt)$/i.test(name)) return 'captions'
  return 'project'
}

export function findKind(value: string): Kind | undefined {
  return Object.hasOwn(uploadKindNames, value) ? (value as Kind) : undefined
}

export function titleOf({ name, filename, artifactId }: Pick<Artifact, 'name' | 'filename' | 'artifactId'>) {
  return name ?? (filename === '' ? artifactId : filename)
}

/**
 * Maximum number of status streams. Leaves connections for uploads, because browsers open at most six
 * HTTP/1.1 connections per server.
 */
const MAX_FOLLOWED = 2

export function useStatusStreams(artifacts: readonly Artifact[]): void {
  const queries = useQueryClient()
  const isVisible = useDocumentVisibility() !== 'hidden'
  const ids = artifacts.filter(isActive).slice(0, MAX_FOLLOWED)
  const followed = ids.map(({ artifactId }) => artifactId).join(' ')
  useEffect(() => {
    if (!isVisible || followed === '') return
    const update = (status: ArtifactStatus) => {
      queries.setQueriesData<ArtifactPage>({ queryKey: ['artifacts', 'list'] }, (page) =>
        page === undefined ? page : withStatus(page, status),
      )
      // Refetches the list, because the status does not include the served file and the poster.
      if (!isActive(status)) void queries.invalidateQueries({ queryKey: ['artifacts'] })
    }
    const leaving = new AbortController()
    for (const id of followed.split(' ')) void follow(id, update, leaving.signal)
    return () => leaving.abort()
  }, [followed, isVisible, queries])
}

/** Reports each status until the artifact is inactive, the server rejects the stream or the signal aborts. */
async function follow(
  id: string,
  update: (status: ArtifactStatus) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const status of await api.artifacts.watch.query({ artifact_id: id }, { signal })) {
        update(status)
        if (!isActive(status)) return
      }
    } catch (thrown) {
      const { status } = toFailure(thrown)
      // Does not retry a rejected stream, because polling still updates the list.
      if (status >= 400 && status < 500) return
    }
    // Waits before it reconnects; the server ends long streams, and connections can fail.
    await new Promise((resolve) => setTimeout(resolve, REFRESH_MS))
  }
}

function withStatus(page: ArtifactPage, status: ArtifactStatus): ArtifactPage {
  const data = page.data.map((one) =>
    one.artifactId === status.artifactId ? { ...one, progress: undefined, ...status } : one,
  )
  return { ...page, data }
}
