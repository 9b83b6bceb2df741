/** One artifact: what can be seen of it, what is known of it, and the ways to take or remove it. */
import { Button, Code, Group, Stack, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { renderSize } from '../format.ts'
import { State } from './ArtifactTable.tsx'
import { type Artifact, addressOf, artifactQuery, kindNames, titleOf } from './artifacts.ts'

interface ArtifactDialogProps {
  /** Nothing is shown without it. */
  readonly id: string | undefined
  /** Those at hand; another one is asked for. */
  readonly artifacts: readonly Artifact[]
  readonly onClose: () => void
}

export function ArtifactDialog({ id, artifacts, onClose }: ArtifactDialogProps) {
  const atHand = artifacts.find(({ artifactId }) => artifactId === id)
  const { data, error, refetch } = useQuery({
    ...artifactQuery(id ?? ''),
    enabled: id !== undefined && atHand === undefined,
  })
  const artifact = atHand ?? data
  const title = artifact ? titleOf(artifact) : 'Upload'
  return (
    <Dialog title={title} isOpen={id !== undefined} onClose={onClose} size="xl">
      {artifact ? <ArtifactView artifact={artifact} siblings={artifacts} onClose={onClose} /> : null}
      {artifact === null ? (
        <Empty icon="search" title="There is no such upload">
          It may have been deleted, or belong to another key.
        </Empty>
      ) : null}
      {artifact === undefined && error === null ? <Loading what="the upload" rows={1} height={240} /> : null}
      {artifact === undefined && error !== null ? (
        <Failed error={error} what="The upload" retry={() => void refetch()} />
      ) : null}
    </Dialog>
  )
}

interface ArtifactViewProps {
  readonly artifact: Artifact
  readonly siblings: readonly Artifact[]
  readonly onClose: () => void
}

function ArtifactView({ artifact, siblings, onClose }: ArtifactViewProps) {
  const { artifactId, state, filename } = artifact
  return (
    <Stack gap="md">
      {state === 'ready' ? <Preview artifact={artifact} siblings={siblings} /> : null}
      <Facts artifact={artifact} />
      <Group justify="flex-end" gap="xs">
        {state === 'ready' ? (
          <Button component="a" variant="default" href={addressOf(artifactId)} download={filename}>
            Download
          </Button>
        ) : null}
        <DeleteArtifact artifact={artifact} onDone={onClose} />
      </Group>
    </Stack>
  )
}

function Facts({ artifact }: { readonly artifact: Artifact }) {
  const { artifactId, kind, filename, size, createdAt, finishedAt, conversion, relatedTo } = artifact
  const facts = [
    ['State', <State key="state" artifact={artifact} />],
    ['Why', conversion?.reason],
    ['Kind', kind && kindNames[kind]],
    ['File', filename === '' ? undefined : <bdi key="file">{filename}</bdi>],
    ['Size', size === undefined ? undefined : renderSize(size)],
    ['Created', <Ago key="created" seconds={createdAt} />],
    ['Received', finishedAt === null ? undefined : <Ago key="received" seconds={finishedAt} />],
    ['Belongs to', relatedTo === undefined ? undefined : <Code key="related">{relatedTo}</Code>],
    ['Id', <Code key="id">{artifactId}</Code>],
  ] as const
  return (
    <dl className="facts">
      {facts.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

function DeleteArtifact({ artifact, onDone }: { artifact: Artifact; onDone: () => void }) {
  const [isAsking, setIsAsking] = useState(false)
  const queries = useQueryClient()
  const remove = async () => {
    await api.artifacts.delete.mutate({ artifact_id: artifact.artifactId })
    onDone()
    await queries.invalidateQueries({ queryKey: ['artifacts'] })
  }
  return (
    <>
      <Button variant="default" c="var(--parley-bad)" onClick={() => setIsAsking(true)}>
        Delete…
      </Button>
      <ConfirmDialog
        title="Delete this upload"
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        onConfirm={remove}
        action="Delete"
        isDangerous
      >
        <Text size="sm" className="break-words">
          <bdi>{titleOf(artifact)}</bdi> is gone for good, and pages that show it show nothing.
        </Text>
      </ConfirmDialog>
    </>
  )
}

interface PreviewProps {
  readonly artifact: Artifact
  /** Captions of a video are among these. */
  readonly siblings: readonly Artifact[]
}

function Preview({ artifact, siblings }: PreviewProps) {
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

const MAX_CAPTION_BYTES = 16 * 1024

function Captions({ id }: { readonly id: string }) {
  const { data } = useQuery({
    queryKey: ['artifacts', 'text', id],
    queryFn: async () => {
      const headers = { Range: `bytes=0-${MAX_CAPTION_BYTES - 1}` }
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
