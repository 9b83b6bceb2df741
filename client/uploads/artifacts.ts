/** The artifacts of the key: their list, and one of them. */
import { queryOptions } from '@tanstack/react-query'
import { api } from '../api.ts'
import type { Outputs } from '../types.ts'

export type ArtifactPage = Outputs['artifacts']['list']
export type Artifact = ArtifactPage['data'][number]
export type ArtifactStatus = Outputs['artifacts']['status']

const PAGE_SIZE = 25

export const artifactsQuery = (after: string | undefined) =>
  queryOptions({
    queryKey: ['artifacts', 'list', after],
    queryFn: () => api.artifacts.list.query({ limit: PAGE_SIZE, after }),
  })

/** One that is on no page of the list at hand; undefined when there is none of that id. */
export const artifactQuery = (id: string) =>
  queryOptions({
    queryKey: ['artifacts', 'one', id],
    queryFn: async (): Promise<Artifact | null> => {
      const status = await api.artifacts.status.query({ artifact_id: id })
      if (status.state === 'unknown') return null
      const served = status.state === 'ready' ? await fetch(addressOf(id), { method: 'HEAD' }) : undefined
      const mediaType = served?.headers.get('content-type') ?? null
      return { ...status, filename: '', mediaType, hasPoster: false, createdAt: 0, finishedAt: null }
    },
  })

/** Where the bytes are. */
export function addressOf(id: string): string {
  return `/artifacts/${id}`
}

export function isUnderWay({ state }: Pick<Artifact, 'state'>): boolean {
  return state === 'uploading' || state === 'processing'
}

/** How much of what is going on is done, 0 to 1; undefined where nothing is, or nobody knows. */
export function shareOf({ state, progress, bytesReceived = 0, size }: ArtifactStatus): number | undefined {
  if (state === 'processing') return progress
  if (state !== 'uploading' || size === undefined) return undefined
  return size === 0 ? 1 : bytesReceived / size
}
