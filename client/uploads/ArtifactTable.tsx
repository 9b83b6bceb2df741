/** Lists the active key's artifacts with their states, newest first. */
import { Anchor, Button, Group, Progress, Stack, Text } from '@mantine/core'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { Ago } from '../components/text.tsx'
import { renderShare, renderSize } from '../format.ts'
import { type Artifact, kindNames, shareOf, titleOf } from './artifacts.ts'

const stateNames = {
  unknown: 'Not found',
  uploading: 'Uploading',
  processing: 'Processing',
  ready: 'Ready',
} as const

interface ArtifactTableProps {
  readonly artifacts: readonly Artifact[]
  readonly onOpen: (id: string) => void
}

export function ArtifactTable({ artifacts, onOpen }: ArtifactTableProps) {
  const columns: Column<Artifact>[] = [
    { name: 'Name', render: (artifact) => <Name artifact={artifact} onOpen={onOpen} /> },
    { name: 'Kind', render: ({ kind }) => (kind === undefined ? '–' : kindNames[kind]) },
    { name: 'State', render: (artifact) => <State artifact={artifact} /> },
    {
      name: 'Size',
      isNumber: true,
      render: ({ size, bytesReceived }) => renderSize(size ?? bytesReceived ?? 0),
    },
    { name: 'Created', render: ({ createdAt }) => <Ago seconds={createdAt} /> },
    {
      name: 'Actions',
      isBare: true,
      render: (artifact) => (
        <Button
          variant="default"
          size="xs"
          aria-label={`Open ${titleOf(artifact)}`}
          onClick={() => onOpen(artifact.artifactId)}
        >
          Open
        </Button>
      ),
    },
  ]
  return (
    <DataTable label="Uploads" columns={columns} rows={artifacts} keyOf={({ artifactId }) => artifactId} />
  )
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
    const label = `${stateNames[state]} ${renderShare(share)}`
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
      <Text size="sm">{isUnconverted ? 'Ready (not converted)' : stateNames[state]}</Text>
    </Group>
  )
}
