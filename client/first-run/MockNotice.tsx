/** States that answers come from the mock model while no other model is connected. */
import './first-run.css'
import { Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { modelsQuery } from '../agents/queries.ts'
import { TextLink } from '../components/text.tsx'
import { Icon } from '../shell/icons.tsx'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { hasOnlyMock } from './first-run.ts'

/** Shows the notice if only the mock model is available. */
export function MockNotice() {
  const { data: models } = useQuery(modelsQuery)
  return hasOnlyMock(models) ? <MockNote /> : null
}

/** Shows the notice. */
export function MockNote() {
  const { is_administrator: isAdministrator } = useMe()
  return (
    <Group role="note" aria-label={t('firstRun.mockModel')} className="mock-notice" gap="xs" wrap="nowrap">
      <Icon name="warning" size={16} />
      <Text size="xs">
        {rich('firstRun.mockNotice', {
          link: isAdministrator ? (
            <TextLink to="/providers" inherit c="inherit" underline="always">
              {t('firstRun.connect')}
            </TextLink>
          ) : (
            t('firstRun.askShort')
          ),
        })}
      </Text>
    </Group>
  )
}
