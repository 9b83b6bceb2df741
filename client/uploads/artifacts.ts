/** The artifacts of the key: their list, and one of them. */
import { queryOptions } from '@tanstack/react-query'
import { api } from '../api.ts'
import { toFailure } from '../failure.ts'
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

/** For those that no stream follows, in milliseconds. */
export const REFRESH_MS = 5_000

/** One that is on no page of the list at hand; null when there is none of that id. */
export const artifactQuery = (id: string) =>
  queryOptions({
    queryKey: ['artifacts', 'one', id],
    queryFn: async (): Promise<Artifact | null> => {
      try {
        return await api.artifacts.get.query({ artifact_id: id })
      } catch (thrown) {
        // 400: what stands in the address can be no id.
        if ([400, 404].includes(toFailure(thrown).status)) return null
        throw thrown
      }
    },
    refetchInterval: ({ state }) => (state.data && isUnderWay(state.data) ? REFRESH_MS : false),
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
