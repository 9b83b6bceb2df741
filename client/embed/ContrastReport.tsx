/**
 * Shows the contrast of text in the chosen colors, with a warning for each combination that is hard to read.
 */

import { Alert, Stack, Table, Text } from '@mantine/core'
import { TEXT_RATIO } from '../../widget/frame/contrast.ts'
import { Status, type Tone } from '../components/Status.tsx'
import { t } from '../strings/language.ts'
import {
  checkContrast,
  describeWarning,
  isReadable,
  type Measurement,
  renderRatio,
  type ThemeColors,
} from './check-contrast.ts'

export function ContrastReport({ colors }: { readonly colors: ThemeColors }) {
  const measurements = checkContrast(colors)
  // The default color needs no warning, because the user has not chosen it.
  const isChosen = colors.primaryColor !== undefined
  const warnings = isChosen ? measurements.filter((one) => !isReadable(one)) : []
  const parts = [...new Set(measurements.map(({ part }) => part))]
  const find = (part: Measurement['part'], scheme: Measurement['scheme']) =>
    measurements.find((one) => one.part === part && one.scheme === scheme)
  return (
    <Stack gap="xs">
      <Table
        className="contrast-table"
        aria-label={t('embed.contrastOfText')}
        verticalSpacing={4}
        horizontalSpacing={4}
      >
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">{t('embed.contrast')}</Table.Th>
            <Table.Th scope="col">{t('embed.light')}</Table.Th>
            <Table.Th scope="col">{t('embed.dark')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {parts.map((part) => (
            <Table.Tr key={part}>
              <Table.Th scope="row" fw={400}>
                {part}
              </Table.Th>
              {(['light', 'dark'] as const).map((scheme) => (
                <Table.Td key={scheme}>
                  <Ratio measurement={find(part, scheme)} tone={isChosen ? 'warn' : 'quiet'} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {!isChosen && measurements.some((one) => !isReadable(one)) ? (
        <Text size="xs" c="dimmed">
          {t('embed.linksLighter', { ratio: renderRatio(TEXT_RATIO) })}
        </Text>
      ) : null}
      <div aria-live="polite">
        {warnings.length === 0 ? null : (
          <Alert color="yellow" p="xs" title={t('embed.lowContrast')}>
            {warnings.map((warning) => (
              <Text key={`${warning.part} ${warning.scheme}`} size="sm">
                {describeWarning(warning)}
              </Text>
            ))}
          </Alert>
        )}
      </div>
    </Stack>
  )
}

interface RatioProps {
  readonly measurement: Measurement | undefined
  /** The tone of a ratio below the limit. */
  readonly tone: Tone
}

function Ratio({ measurement, tone }: RatioProps) {
  if (measurement === undefined) return null
  return <Status tone={isReadable(measurement) ? 'good' : tone}>{renderRatio(measurement.ratio)}</Status>
}
