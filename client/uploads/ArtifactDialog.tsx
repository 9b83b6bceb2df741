/** Shows an artifact's preview and properties, and lets the user download or delete it. */
import { Button, Code, Group, Stack, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { problemOf } from '../failure.ts'
import { renderSize } from '../format.ts'
import { showDone, showProblem } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { State } from './ArtifactTable.tsx'
import { binArtifacts } from './artifact-bin.ts'
import { type Artifact, addressOf, artifactQuery, kindNames, titleOf } from './artifacts.ts'

interface ArtifactDialogProps {
  /** Undefined to close the dialog. */
  readonly id: string | undefined
  /** Artifacts that are already loaded; others are fetched. */
  readonly artifacts: readonly Artifact[]
  readonly onClose: () => void
}

export function ArtifactDialog({ id, artifacts, onClose }: ArtifactDialogProps) {
  const loaded = artifacts.find(({ artifactId }) => artifactId === id)
  const { data, error, refetch } = useQuery({
    ...artifactQuery(id ?? ''),
    enabled: id !== undefined && loaded === undefined,
  })
  const artifact = loaded ?? data
  const title = artifact ? titleOf(artifact) : t('uploads.artifact')
  return (
    <Dialog title={title} isOpen={id !== undefined} onClose={onClose} size="xl">
      {artifact ? <ArtifactView artifact={artifact} siblings={artifacts} onClose={onClose} /> : null}
      {artifact === null ? (
        <Empty icon="search" title={t('uploads.artifactNotFound')}>
          {t('uploads.artifactNotFoundHelp')}
        </Empty>
      ) : null}
      {artifact === undefined && error === null ? <Loading what="artifact" rows={1} height={240} /> : null}
      {artifact === undefined && error !== null ? (
        <Failed error={error} what="artifact" retry={() => void refetch()} />
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
            {t('uploads.download')}
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
    [t('uploads.state'), <State key="state" artifact={artifact} />],
    [t('uploads.reason'), conversion?.reason],
    [t('uploads.kind'), kind && kindNames[kind]],
    [t('uploads.fileName'), filename === '' ? undefined : <bdi key="file">{filename}</bdi>],
    [t('uploads.size'), size === undefined ? undefined : renderSize(size)],
    [t('uploads.created'), <Ago key="created" seconds={createdAt} />],
    [t('uploads.received'), finishedAt === null ? undefined : <Ago key="received" seconds={finishedAt} />],
    [t('uploads.relatedTo'), relatedTo === undefined ? undefined : <Code key="related">{relatedTo}</Code>],
    [t('uploads.id'), <Code key="id">{artifactId}</Code>],
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

/** Moves a finished upload to the bin, and deletes any other one after a confirmation. */
function DeleteArtifact({ artifact, onDone }: { artifact: Artifact; onDone: () => void }) {
  const [isAsking, setIsAsking] = useState(false)
  const queries = useQueryClient()
  const remove = async () => {
    await api.artifacts.delete.mutate({ artifact_id: artifact.artifactId })
    onDone()
    await queries.invalidateQueries({ queryKey: ['artifacts'] })
    showDone(t('uploads.artifactDeleted'))
  }
  if (artifact.state === 'ready') {
    const bin = () => binArtifacts(queries, [artifact.artifactId]).then(onDone)
    return (
      <Button
        variant="default"
        c="var(--bad)"
        onClick={() => void bin().catch((thrown) => showProblem(problemOf(thrown)))}
      >
        {t('common.delete')}
      </Button>
    )
  }
  return (
    <>
      <Button variant="default" c="var(--bad)" onClick={() => setIsAsking(true)}>
        {t('uploads.deleteMenu')}
      </Button>
      <ConfirmDialog
        title={t('uploads.deleteArtifact')}
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        onConfirm={remove}
        action={t('common.delete')}
        isDangerous
      >
        <Text size="sm" className="break-words">
          {rich('uploads.deleteLoss', { name: <bdi>{titleOf(artifact)}</bdi> })}
        </Text>
      </ConfirmDialog>
    </>
  )
}

interface PreviewProps {
  readonly artifact: Artifact
  /** Loaded artifacts, which may include a video's captions. */
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
      {t('uploads.noPreview')}
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
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className="artifact-preview artifact-text" tabIndex={0} aria-label={t('uploads.captions')}>
      <pre>{data ?? ''}</pre>
    </section>
  )
}
