/** Lists the active key's artifacts with their states, newest first. */
import { Anchor, Code, Group, Menu, Progress, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import type { ComponentProps } from 'react'
import type { Column } from '../components/DataTable.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { problemOf } from '../failure.ts'
import { renderShare, renderSize } from '../format.ts'
import { artifactKinds, artifactStates, type UploadsSearch } from '../search.ts'
import { showDone, showProblem } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { binArtifacts } from './artifact-bin.ts'
import { type Artifact, addressOf, kindNames, shareOf, titleOf } from './artifacts.ts'

const stateNames = {
  unknown: t('uploads.notFound'),
  uploading: t('uploads.uploading'),
  processing: t('uploads.processing'),
  ready: t('uploads.ready'),
} as const

type ListProps = ComponentProps<typeof ListView<Artifact>>

interface ArtifactTableProps extends Pick<ListProps, 'query' | 'onSearch'> {
  readonly search: UploadsSearch
  readonly onOpen: (id: string) => void
}

export function ArtifactTable({
  query,
  search: { artifact: _, ...search },
  onSearch,
  onOpen,
}: ArtifactTableProps) {
  const queries = useQueryClient()
  const bin = async (artifacts: readonly Artifact[]) => {
    if (!artifacts.every(({ state }) => state === 'ready')) throw new Error(t('uploads.onlyFinished'))
    await binArtifacts(
      queries,
      artifacts.map(({ artifactId }) => artifactId),
    )
  }
  const columns: Column<Artifact>[] = [
    {
      name: 'uploads.name',
      isMain: true,
      sort: 'name',
      render: (artifact) => <Name artifact={artifact} onOpen={onOpen} />,
    },
    { name: 'uploads.kind', render: ({ kind }) => (kind === undefined ? '–' : kindNames[kind]) },
    { name: 'uploads.state', render: (artifact) => <State artifact={artifact} /> },
    {
      name: 'uploads.size',
      sort: 'size',
      firstOrder: 'desc',
      isNumber: true,
      render: ({ size, bytesReceived }) => renderSize(size ?? bytesReceived ?? 0),
    },
    {
      name: 'uploads.created',
      sort: 'created',
      firstOrder: 'desc',
      render: ({ createdAt }) => <Ago seconds={createdAt} />,
    },
    { name: 'uploads.id', isHidden: true, render: ({ artifactId }) => <Code>{artifactId}</Code> },
  ]
  return (
    <ListView
      label={t('uploads.title')}
      items="uploads"
      columns={columns}
      query={query}
      idOf={({ artifactId }) => artifactId}
      nameOf={titleOf}
      search={search}
      onSearch={onSearch}
      sorting={{ sort: 'created', order: 'desc' }}
      placeholder={t('uploads.searchBy')}
      filters={filters}
      bulk={[{ label: t('common.delete'), isDangerous: true, run: bin }]}
      menu={(artifact) => (
        <ArtifactMenuItems
          artifact={artifact}
          onOpen={onOpen}
          onDelete={() => void bin([artifact]).catch((thrown) => showProblem(problemOf(thrown)))}
        />
      )}
      empty={
        <Empty icon="uploads" title={t('uploads.none')}>
          {t('uploads.noneHelp')}
        </Empty>
      }
    />
  )
}

const filters = [
  {
    name: 'kind',
    label: t('uploads.kind'),
    all: t('uploads.allKinds'),
    options: artifactKinds.map((value) => ({ value, label: kindNames[value] })),
  },
  {
    name: 'state',
    label: t('uploads.state'),
    all: t('uploads.allStates'),
    options: artifactStates.map((value) => ({ value, label: stateNames[value] })),
  },
]

interface ArtifactMenuItemsProps {
  readonly artifact: Artifact
  readonly onOpen: (id: string) => void
  readonly onDelete: () => void
}

function ArtifactMenuItems({ artifact, onOpen, onDelete }: ArtifactMenuItemsProps) {
  const { artifactId, state, filename } = artifact
  return (
    <>
      <Menu.Item onClick={() => onOpen(artifactId)}>{t('uploads.open')}</Menu.Item>
      {state === 'ready' ? (
        <Menu.Item component="a" href={addressOf(artifactId)} download={filename}>
          {t('uploads.download')}
        </Menu.Item>
      ) : null}
      <Menu.Item onClick={() => void copyId(artifactId)}>{t('uploads.copyId')}</Menu.Item>
      {state === 'ready' ? (
        <Menu.Item className="danger-text" onClick={onDelete}>
          {t('common.delete')}
        </Menu.Item>
      ) : null}
    </>
  )
}

async function copyId(id: string): Promise<void> {
  await navigator.clipboard.writeText(id)
  showDone(t('uploads.idCopied'))
}

function Name({ artifact, onOpen }: { artifact: Artifact; onOpen: (id: string) => void }) {
  const { artifactId, name, filename } = artifact
  return (
    <Stack gap={0} align="flex-start">
      <Anchor component="button" size="sm" fw={500} ta="start" onClick={() => onOpen(artifactId)}>
        <bdi>{titleOf(artifact)}</bdi>
      </Anchor>
      {name === undefined ? null : (
        <Text size="xs" c="dimmed">
          <bdi>{filename}</bdi>
        </Text>
      )}
    </Stack>
  )
}

/** Shows the state; a tooltip explains why an original file is served unconverted. */
export function State({ artifact }: { readonly artifact: Artifact }) {
  const { state, conversion } = artifact
  const share = shareOf(artifact)
  if (share !== undefined) {
    const label = t('uploads.stateShare', { state: stateNames[state], share: renderShare(share) })
    return (
      <Stack gap={4} className="artifact-state">
        <Text size="sm">{label}</Text>
        <Progress value={share * 100} size="sm" aria-label={stateNames[state]} />
      </Stack>
    )
  }
  const isUnconverted = state === 'ready' && conversion?.reason !== undefined
  return (
    <Group gap={6} title={isUnconverted ? conversion.reason : undefined}>
      <span className="state-dot" data-state={state} />
      <Text size="sm">{isUnconverted ? t('uploads.notConverted') : stateNames[state]}</Text>
    </Group>
  )
}
