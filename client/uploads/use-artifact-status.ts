/** Follows the artifacts that are under way, over their status streams, and writes the news into the list. Decision: 9. */
import { useDocumentVisibility } from '@mantine/hooks'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { type Artifact, type ArtifactPage, type ArtifactStatus, addressOf, isUnderWay } from './artifacts.ts'

/** A browser keeps six connections to a server over HTTP/1.1, and the uploads need some. */
const MOST_FOLLOWED = 2

export function useFollowed(artifacts: readonly Artifact[]): void {
  const queries = useQueryClient()
  const isVisible = useDocumentVisibility() !== 'hidden'
  const ids = artifacts.filter(isUnderWay).slice(0, MOST_FOLLOWED)
  const followed = ids.map(({ artifactId }) => artifactId).join(' ')
  useEffect(() => {
    if (!isVisible || followed === '') return
    const tell = (status: ArtifactStatus) => {
      queries.setQueriesData<ArtifactPage>({ queryKey: ['artifacts', 'list'] }, (page) =>
        page === undefined ? page : withStatus(page, status),
      )
      // What is served, and whether there is a poster, stands in the list alone.
      if (!isUnderWay(status)) void queries.invalidateQueries({ queryKey: ['artifacts'] })
    }
    const streams = followed.split(' ').map((id) => follow(id, tell))
    return () => {
      for (const stream of streams) stream.close()
    }
  }, [followed, isVisible, queries])
}

function follow(id: string, tell: (status: ArtifactStatus) => void): EventSource {
  const stream = new EventSource(`${addressOf(id)}/status`)
  stream.addEventListener('message', ({ data }: MessageEvent<string>) => {
    const status: ArtifactStatus = JSON.parse(data)
    if (!isUnderWay(status)) stream.close()
    tell(status)
  })
  return stream
}

function withStatus(page: ArtifactPage, status: ArtifactStatus): ArtifactPage {
  const data = page.data.map((one) =>
    one.artifactId === status.artifactId ? { ...one, progress: undefined, ...status } : one,
  )
  return { ...page, data }
}
