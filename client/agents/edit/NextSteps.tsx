/** Offers the next steps directly after an agent was created: try it, embed it, and use its key. */
import { Button, CloseButton, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { hasOnlyMock } from '../../first-run/first-run.ts'
import { changeSearch } from '../../search.ts'
import { useMe } from '../../shell/use-me.ts'
import { t } from '../../strings/language.ts'
import { modelsQuery } from '../queries.ts'

export function NextSteps({ agentId }: { readonly agentId: string }) {
  const { created, try: isTrying, view } = useSearch({ from: '/shell/agents/$agentId/' })
  const navigate = useNavigate()
  const { data: models } = useQuery(modelsQuery)
  const { is_administrator: isAdministrator } = useMe()
  if (created !== true) return null
  const params = { agentId }
  const hide = () =>
    void navigate({
      to: '.',
      search: (now: object) => changeSearch(now, { created: undefined }),
      replace: true,
    })
  return (
    <section className="panel next-steps" aria-label={t('agents.nextSteps')}>
      <Group justify="space-between" gap="sm">
        <Text size="sm" flex="1 1 280px">
          {t('agents.nextStepsAbout')}
        </Text>
        <Group gap="xs">
          {isTrying === true || view === 'try' ? null : (
            <Button
              variant="default"
              size="xs"
              renderRoot={(props) => (
                <Link
                  to="/agents/$agentId"
                  params={params}
                  search={{ created: true, try: true }}
                  {...props}
                />
              )}
            >
              {t('firstRun.tryTheAgent')}
            </Button>
          )}
          <Button
            variant="default"
            size="xs"
            renderRoot={(props) => <Link to="/agents/$agentId/embed" params={params} {...props} />}
          >
            {t('firstRun.embedTheAgent')}
          </Button>
          <Button
            variant="default"
            size="xs"
            renderRoot={(props) => <Link to="/keys" search={{ tab: 'agent', agent: agentId }} {...props} />}
          >
            {t('agents.viewKey')}
          </Button>
          {isAdministrator && hasOnlyMock(models) ? (
            <Button variant="default" size="xs" renderRoot={(props) => <Link to="/providers" {...props} />}>
              {t('firstRun.connectModel')}
            </Button>
          ) : null}
        </Group>
      </Group>
      <CloseButton aria-label={t('agents.hideNextSteps')} onClick={hide} />
    </section>
  )
}
