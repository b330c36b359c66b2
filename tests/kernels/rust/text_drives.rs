//! Shape: a calculator that reads text, tables of numbers in text, what is borrowed or owned, bits and bytes.
//! Hard: text is read byte by byte, in memory beside floats, and an error is a text where a value would be.
use cotangent::differentiable;

fn agree(f: impl Fn(&[f64]) -> f64, x: &[f64], value: f64, grad: &[f64]) {
    assert_eq!(f(x).to_bits(), value.to_bits(), "value");
    assert_eq!(x.len(), grad.len(), "length");
    for i in 0..x.len() {
        let h = 1e-6 * x[i].abs().max(1.0);
        let (mut a, mut b) = (x.to_vec(), x.to_vec());
        a[i] += h;
        b[i] -= h;
        let d = (f(&a) - f(&b)) / (2.0 * h);
        assert!(
            (d - grad[i]).abs() <= 2e-6 * d.abs().max(1.0),
            "element {i}: got {}, differences {d}",
            grad[i]
        );
    }
}

macro_rules! case {
    ($test:ident, $f:ident, $x:expr) => {
        #[test]
        fn $test() {
            let x: Vec<f64> = $x;
            for _ in 0..2 {
                let (v, c) = $f::value_and_grad(&x);
                agree($f, &x, v, &c.x);
            }
            let t: Vec<f64> = (0..x.len()).map(|i| (i as f64 * 0.7 + 0.3).sin()).collect();
            let (v, dot) = $f::jvp(&x, $f::Tangents { x: t.clone() });
            let c = $f::grad(&x);
            let want: f64 = c.x.iter().zip(&t).map(|(a, b)| a * b).sum();
            assert_eq!(v.to_bits(), $f(&x).to_bits());
            assert!(
                (dot - want).abs() <= 1e-9 * want.abs().max(1.0),
                "forward {dot}, reverse {want}"
            );
        }
    };
}

fn ramp(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.4 + 0.31 * i as f64 - 0.011 * (i * i) as f64).collect()
}
use std::borrow::Cow;
use std::str::FromStr;
fn clip<'a>(x: &'a [f64], hi: f64) -> Cow<'a, [f64]> {
    if x.iter().any(|v| *v > hi) {
        Cow::Owned(x.iter().map(|v| v.min(hi)).collect())
    } else {
        Cow::Borrowed(x)
    }
}
fn name(i: usize) -> Cow<'static, str> {
    if i == 0 { "zero".into() } else { format!("n{i}").into() }
}
#[derive(Debug, PartialEq, Clone)]
enum Tok {
    Num(f64),
    Var(usize),
    Op(char),
    Open,
    Close,
    Fun(String),
}
fn lex(s: &str) -> Result<Vec<Tok>, String> {
    let b = s.as_bytes();
    let mut i = 0;
    let mut v = vec![];
    while i < b.len() {
        match b[i] {
            b' ' => i += 1,
            b'0'..=b'9' | b'.' => {
                let j = i;
                while i < b.len() && (b[i].is_ascii_digit() || b[i] == b'.') {
                    i += 1;
                }
                v.push(Tok::Num(f64::from_str(&s[j..i]).map_err(|e| e.to_string())?));
            }
            b'a'..=b'z' => {
                let j = i;
                while i < b.len() && b[i].is_ascii_alphabetic() {
                    i += 1;
                }
                let w = &s[j..i];
                v.push(if w.len() == 1 {
                    Tok::Var((b[j] - b'a') as usize)
                } else {
                    Tok::Fun(w.to_owned())
                });
            }
            b'(' => {
                v.push(Tok::Open);
                i += 1
            }
            b')' => {
                v.push(Tok::Close);
                i += 1
            }
            c => {
                v.push(Tok::Op(c as char));
                i += 1
            }
        }
    }
    Ok(v)
}
struct P<'a> {
    t: &'a [Tok],
    i: usize,
    x: &'a [f64],
}
impl P<'_> {
    fn peek(&self) -> Option<&Tok> {
        self.t.get(self.i)
    }
    fn expr(&mut self, p: u8) -> Result<f64, String> {
        let mut l = match self.t.get(self.i).cloned().ok_or("end")? {
            Tok::Num(n) => {
                self.i += 1;
                n
            }
            Tok::Var(k) => {
                self.i += 1;
                *self.x.get(k).ok_or_else(|| format!("no {}", name(k)))?
            }
            Tok::Op('-') => {
                self.i += 1;
                -self.expr(9)?
            }
            Tok::Open => {
                self.i += 1;
                let v = self.expr(0)?;
                self.i += 1;
                v
            }
            Tok::Fun(f) => {
                self.i += 1;
                let v = self.expr(9)?;
                match f.as_str() {
                    "sin" => v.sin(),
                    "exp" => v.exp(),
                    _ => return Err(f),
                }
            }
            t => return Err(format!("{t:?}")),
        };
        while let Some(&Tok::Op(o)) = self.peek() {
            let q = match o {
                '+' | '-' => 1,
                '*' | '/' => 2,
                '^' => 3,
                _ => return Err(o.to_string()),
            };
            if q < p {
                break;
            }
            self.i += 1;
            let r = self.expr(q + 1)?;
            l = match o {
                '+' => l + r,
                '-' => l - r,
                '*' => l * r,
                '/' => l / r,
                _ => l.powf(r),
            };
        }
        Ok(l)
    }
}
#[differentiable]
fn calc(x: &[f64]) -> f64 {
    let mut s = 0.0;
    for t in [
        "a*b+c^2",
        "sin(a)*exp(-b/2.5)-(a-c)*3",
        "zz+1",
        "d-a",
        "1.2.3",
        "(a+b)*(b+c)/(1+a^2)",
    ] {
        s += match lex(t).and_then(|t| P { t: &t, i: 0, x }.expr(0)) {
            Ok(v) => v,
            Err(e) => x[0] * e.len() as f64,
        };
    }
    s
}
case!(a_calculator, calc, ramp(3));
#[differentiable]
fn cows(x: &[f64]) -> f64 {
    let a = clip(x, 1.0);
    let b = clip(x, 100.0);
    let mut c = a.clone();
    c.to_mut()[0] *= x[1];
    let d = b.into_owned();
    let mut total = 0.0;
    for (i, v) in a.iter().enumerate() {
        let n = name(i);
        total += v * n.len() as f64 * d[i];
    }
    let csv = "1;2.5;x;3\n4;;6";
    let mut w = vec![];
    for line in csv.lines() {
        for cell in line.split(';') {
            w.push(cell.parse::<f64>().unwrap_or(0.5));
        }
    }
    let words: Vec<String> = "the quick brown"
        .split_whitespace()
        .map(|w| w.chars().rev().collect::<String>().to_uppercase())
        .collect();
    let key = words.join("-");
    let h = key.bytes().fold(5381u32, |h, b| h.wrapping_mul(33) ^ b as u32);
    total
        + c.iter().zip(w.iter().cycle()).map(|(a, b)| a * b).sum::<f64>()
        + x[(h % 3) as usize] * key.find('K').unwrap_or(1) as f64
        + x[0] * i64::from_str_radix("ff", 16).unwrap() as f64 / 255.0
}
case!(borrowed_or_owned, cows, ramp(5));
#[differentiable]
fn bytes(x: &[f64]) -> f64 {
    let mut bits = 0u64;
    for (i, v) in x.iter().enumerate() {
        if *v > 1.0 {
            bits |= 1 << (i * 3);
        }
    }
    let idx: [u8; 4] = (0x03010200u32).to_le_bytes();
    let w = u16::from_be_bytes([1, 2]) as f64;
    let gray: Vec<u32> = (0..4u32).map(|g| g ^ g >> 1).collect();
    let s = x[idx[2] as usize] * w
        + gray
            .iter()
            .map(|g| x[*g as usize] * g.leading_zeros() as f64)
            .sum::<f64>();
    let sat = 250u8.saturating_add((x[0] * 10.0) as u8) as f64;
    let chk = 7i32.checked_div(x.len() as i32 - 5).map_or(x[1], |d| d as f64 * x[2]);
    let (q, r) = ((x[3] * 100.0) as i64 / 7, (x[3] * 100.0) as i64 % 7);
    s + bits.count_ones() as f64 * x[0]
        + sat * x[1]
        + chk
        + (q - r) as f64 * x[2]
        + (x[1] as i32 as f64) * x[1]
        + (x[0] as f32 as f64) * 0.0
        + x[2].round() * x[0]
        + (x[2].to_bits() >> 63) as f64
        + x[3].trunc()
        + (x[3] % 0.3)
        + x[1].div_euclid(0.4)
        + f64::from(x[0] > 0.2) * x[3]
}
case!(bits_and_bytes, bytes, vec![0.43, 0.71, 0.98, 1.234, 1.5]);
