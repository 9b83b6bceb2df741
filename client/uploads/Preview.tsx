/** What can be seen of an artifact: a video that plays, a picture, the beginning of captions. */
import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type Artifact, addressOf } from './artifacts.ts'
import { titleOf } from './kinds.ts'

interface PreviewProps {
  readonly artifact: Artifact
  /** Captions of a video are among these. */
  readonly siblings: readonly Artifact[]
}

export function Preview({ artifact, siblings }: PreviewProps) {
  const { artifactId, mediaType } = artifact
  const type = mediaType?.split(';')[0] ?? ''
  if (type === 'video/mp4' || type === 'video/webm') return <Video artifact={artifact} siblings={siblings} />
  if (type.startsWith('image/'))
    return <img className="artifact-preview" src={addressOf(artifactId)} alt={titleOf(artifact)} />
  if (type === 'text/vtt') return <Captions id={artifactId} />
  return (
    <Text size="sm" c="dimmed">
      There is no preview of this kind of file; download it to look at it.
    </Text>
  )
}

function Video({ artifact, siblings }: PreviewProps) {
  const { artifactId, hasPoster } = artifact
  const captions = siblings.filter(
    ({ relatedTo, mediaType, state }) =>
      relatedTo === artifactId && state === 'ready' && mediaType === 'text/vtt',
  )
  return (
    <video
      className="artifact-preview"
      controls
      preload="metadata"
      playsInline
      src={addressOf(artifactId)}
      aria-label={titleOf(artifact)}
      {...(hasPoster ? { poster: `${addressOf(artifactId)}/poster` } : {})}
    >
      {captions.map((one) => (
        <track key={one.artifactId} kind="captions" label={titleOf(one)} src={addressOf(one.artifactId)} />
      ))}
    </video>
  )
}

const MOST_CAPTION_BYTES = 16 * 1024

function Captions({ id }: { readonly id: string }) {
  const { data } = useQuery({
    queryKey: ['artifacts', 'text', id],
    queryFn: async () => {
      const headers = { Range: `bytes=0-${MOST_CAPTION_BYTES - 1}` }
      return (await fetch(addressOf(id), { headers })).text()
    },
  })
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <section className="artifact-preview artifact-text" tabIndex={0} aria-label="The captions">
      <pre>{data ?? ''}</pre>
    </section>
  )
}
