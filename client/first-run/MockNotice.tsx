/** States that answers come from the mock model while no other model is connected. */
import './first-run.css'
import { Anchor, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { modelsQuery } from '../agents/queries.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { hasOnlyMock } from './first-run.ts'

/** URL of the instructions for connecting a model. */
export const CONNECT_MODEL_URL = '/docs/getting-started.md'

export function MockNotice() {
  const { data: models } = useQuery(modelsQuery)
  if (!hasOnlyMock(models)) return null
  return (
    <Group role="note" aria-label={t('firstRun.mockModel')} className="mock-notice" gap="xs" wrap="nowrap">
      <Icon name="warning" size={16} />
      <Text size="xs">{rich('firstRun.mockNotice', { link: <ConnectModelLink /> })}</Text>
    </Group>
  )
}

function ConnectModelLink() {
  return (
    <Anchor href={CONNECT_MODEL_URL} target="_blank" rel="noreferrer" inherit c="inherit" underline="always">
      {t('firstRun.connect')}
    </Anchor>
  )
}
