//! Several directions at once: what emits a sweep deals with one after the other.

/// Emits what each direction takes.
pub trait Directions {
    /// How many there are.
    fn width(&self) -> u32;

    /// Deals with that one from here on.
    fn turn_to(&mut self, direction: u32);

    /// The same for each; then it deals with the first again.
    fn each_direction<T>(&mut self, mut emit: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let each = 0..self.width();
        let all = each.map(|direction| {
            self.turn_to(direction);
            emit(self)
        });
        let all = all.collect();
        self.turn_to(0);
        all
    }
}
